// What every page adds to plain links and forms: results while typing, keys, the palette, a dialog for a new note, updates without a
// reload, and reconnecting to a server that is gone. Every page can be read and used without it.

const IDLE = 5000; // milliseconds between two looks whether the server is there and has something new
const GONE = 2000; // and while it is not there
const TYPING = 120; // milliseconds without a key before a search is sent
const CHOICES = 6; // hits in the palette
const MOST_LOOKS = 200; // that an inbox goes back by itself
const SEQUENCE = 1500; // milliseconds between g and the key of a page
const DRAFT = "draft"; // what was typed and not sent, until this tab is closed

const gone = document.getElementById("gone");
const form = document.getElementById("search");
const results = document.getElementById("results");
const input = document.getElementById("q");

const find = (selector, inside = document) => inside.querySelector(selector);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const parse = (text) => new DOMParser().parseFromString(text, "text/html");

function made(name, values = {}, ...inside) {
  const element = Object.assign(document.createElement(name), values);
  element.append(...inside);
  return element;
}

// The path of this browser's pages
//
// The cookie of a session is sent to no other path, so that servers on other ports do not see it. Storage knows ports: an address
// without the path, such as a bookmark, is led to it from here.

const room = document.body.dataset.room;
const signin = find("[data-signin]");
if (room) localStorage.setItem("room", room);
if (signin) {
  const known = localStorage.getItem("room");
  const here = location.pathname.match(/^\/~[^/]+/)?.[0] ?? "";
  const rest = ["/enter", "/signin"].includes(location.pathname) ? "/" : location.pathname.slice(here.length) + location.search;
  if (signin.dataset.signin === "left") sessionStorage.clear();
  if (signin.dataset.signin === "left" || known === here) localStorage.removeItem("room");
  else if (known && location.pathname !== "/signin") location.replace(known + rest);
}
const root = `${room ?? ""}/`;

// The server, and new items

let alive = true;
let next = 0;
let state = null; // last known state of this page's memories
const waiting = new Set(); // functions to call once it is back

function say(works) {
  if (works === alive) return;
  alive = works;
  look();
  gone.hidden = works;
  if (works) {
    const again = [...waiting];
    waiting.clear();
    for (const one of again) one();
  }
}

async function ping() {
  try {
    const address = document.body.dataset.live;
    const answer = await fetch(address ?? "/healthz", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    say(true);
    if (!address || !answer.ok) return;
    const now = await answer.text();
    if (state !== null && now !== state) await renew();
    state = now;
  } catch {
    say(false);
  }
}

function look() {
  clearTimeout(next);
  next = setTimeout(async () => { if (!document.hidden || !alive) await ping(); look(); }, alive ? IDLE : GONE);
}

// Refresh the live parts of the page; offer a button instead where the user is working in one of them.
async function renew(asked = false) {
  const parts = all("main [data-live]").filter((part) => part.id);
  if (!parts.length || (part_of(input, parts) && input.value)) return;
  const busy = find("dialog[open]") || parts.some((part) => part.contains(document.activeElement) || find("details[open]", part));
  find(".fresh")?.remove();
  if (busy && !asked) {
    const button = made("button", { type: "button", className: "fresh", textContent: "Show new items" });
    button.addEventListener("click", () => renew(true));
    find("main").prepend(button);
    return;
  }
  const answer = await fetch(location.href, { cache: "no-store" });
  if (!answer.ok) return;
  const page = parse(await answer.text());
  for (const part of parts) {
    const fresh = page.getElementById(part.id);
    if (fresh) part.replaceChildren(...fresh.childNodes);
  }
}

const part_of = (field, parts) => field && parts.some((part) => part === results);

ping();
look();
document.addEventListener("visibilitychange", () => { if (!document.hidden) ping(); });

// Results while one types

let asked = 0;
let running = null;

function address(of) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(of)) if (value !== "") fields.append(name, value);
  return fields;
}

async function search() {
  const number = ++asked;
  running?.abort();
  running = new AbortController();
  const fields = address(form);
  const shown = fields.size ? `${root}search?${fields}` : `${root}search`;
  fields.set("part", "results");
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${root}search?${fields}`, { signal: running.signal, cache: "no-store" });
    const text = await answer.text();
    if (number !== asked) return; // a newer question is on its way
    say(true);
    if (answer.status === 401) return location.assign(shown);
    const page = parse(text);
    // A page for trouble comes whole; of it only the inside is shown here.
    results.replaceChildren(...(find("main", page) ?? page.body).childNodes);
    results.toggleAttribute("data-live", !input.value);
    document.getElementById("announced").textContent = find(".count, h2, [role=alert]", results)?.textContent ?? "";
    history.replaceState(null, "", shown);
    document.title = `${input.value.trim() || "Search"} · Bethink`;
    if (answer.status === 503) setTimeout(() => { if (number === asked) search(); }, 3000);
  } catch (error) {
    if (error.name === "AbortError") return;
    waiting.add(search);
    say(false);
  } finally {
    if (number === asked) results.setAttribute("aria-busy", "false");
  }
}

function later(work) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(work, TYPING); };
}

if (form && results) {
  form.addEventListener("input", later(search));
  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
}
for (const chosen of all("form[data-at-once] select")) {
  chosen.addEventListener("change", () => chosen.form.requestSubmit());
  find("button", chosen.form).hidden = true;
}

// Changes: sent from here, so that what was typed stays where it is when the server is gone

function tell(sentences) {
  // Show an error above the page, which stays as it is, with the typed text.
  find("main > .notice.told")?.remove();
  const notice = made("div", { className: "notice bad told" }, ...sentences.map((textContent) => made("p", { textContent })));
  notice.setAttribute("role", "alert");
  find("main").prepend(notice);
}

function refuse(dialog, page) {
  // Show the error about a new memory in its dialog.
  const notice = find("[role=alert]", dialog);
  notice.textContent = find("main [role=alert], .trouble p", page)?.textContent ?? "";
  notice.hidden = false;
}

const unsaved = new Set(); // forms in which something was typed and not sent

document.addEventListener("input", ({ target }) => {
  if (target.form?.method === "post" && !target.form.matches("[data-add], [data-plain], #bulk")) unsaved.add(target.form);
});
addEventListener("beforeunload", (event) => { if ([...unsaved].some((one) => one.isConnected)) event.preventDefault(); });

document.addEventListener("submit", async (event) => {
  const sent = event.target;
  if (sent.method !== "post" || sent.dataset.plain !== undefined) return;
  event.preventDefault();
  const button = event.submitter;
  const fields = new URLSearchParams(new FormData(sent, button));
  if (sent.id === "bulk" && !fields.has("ids")) return tell(["Select something first: tick its box, or press x."]);
  if (button) button.disabled = true;
  try {
    const answer = await fetch(sent.action, { method: "POST", body: fields });
    say(true);
    if (answer.redirected && answer.ok) {
      unsaved.clear();
      if (sent.dataset.add !== undefined) sessionStorage.removeItem(DRAFT);
      if (answer.url === location.href) location.reload(); else location.assign(answer.url);
      return;
    }
    const page = parse(await answer.text());
    const trouble = find(".trouble", page);
    if (sent.closest("dialog")) return refuse(sent.closest("dialog"), page);
    if (trouble) tell(all("h1, p:not(:has(a))", trouble).map((part) => part.textContent.trim()));
    else find("main").replaceChildren(...find("main", page).childNodes);
    find("main [role=alert], main h1")?.scrollIntoView({ block: "center" });
  } catch {
    say(false);
  } finally {
    if (button) button.disabled = false;
  }
});

// A new memory: what was typed stays when the dialog is closed, and on the next page of this tab

const adding = document.getElementById("add");
const text = adding && find("textarea", adding);

function openAdd(said = "") {
  if (!adding) return;
  text.value = said || sessionStorage.getItem(DRAFT) || text.value;
  adding.showModal();
  text.focus();
}

if (adding) {
  text.addEventListener("input", () => sessionStorage.setItem(DRAFT, text.value));
  const close = find("[data-close]", adding);
  close.hidden = false;
  close.addEventListener("click", () => adding.close());
}

// The palette: pages, projects, a search and a new memory behind one key

const palette = document.getElementById("palette");
const field = palette && find("input", palette);
const list = document.getElementById("choices");
let choices = [];
let chosen = 0;
let looking = 0;

const leads = (hint) => (link) => ({ label: link.textContent.trim(), hint, act: () => location.assign(link.href) });

const project = () => new URLSearchParams(new URL(document.getElementById("open-palette").href).search);

function searchAddress(question, more = {}) {
  const fields = project();
  for (const [name, value] of Object.entries({ q: question, ...more })) fields.set(name, value);
  return `${root}search?${fields}`;
}

// Pages, projects and commands that match what is typed: shown with every letter, so that Enter always acts on the current text.
function offer() {
  const typed = field.value.trim();
  const fits = ({ label }) => label.toLowerCase().includes(typed.toLowerCase());
  const fixed = [...all(".top nav a").map(leads("page")), ...all("#projects a").map(leads("project"))].filter(fits);
  const more = [];
  if (typed) more.push({ label: `Search for “${typed}”`, hint: "search", act: () => location.assign(searchAddress(typed)) });
  const undo = document.getElementById("undo");
  const commands = [undo && { label: "Undo the last change", hint: "Ctrl Z", act: () => undo.requestSubmit() }, help && { label: "Keyboard shortcuts", hint: "?", act: () => help.showModal() }];
  fixed.push(...commands.filter((one) => one && fits(one)));
  if (adding) more.push({ label: typed ? `Add “${typed}”` : "Add a note", hint: "add", act: () => openAdd(typed) });
  looking += 1; // results of an earlier text are not shown any more
  show(typed ? [...fixed.slice(0, 4), ...more] : [...fixed, ...more]);
}

// Memories that match, below the rest: asked for when typing pauses.
async function offerHits() {
  const typed = field.value.trim();
  const number = looking;
  if (!typed) return;
  try {
    const answer = await fetch(searchAddress(typed, { part: "results" }), { cache: "no-store" });
    if (number !== looking || !answer.ok) return;
    const hits = all(".hit", parse(await answer.text())).slice(0, CHOICES);
    show([...choices, ...hits.map((hit) => ({ label: find(".open", hit).textContent.trim(), hint: find(".kind", hit).textContent, act: () => location.assign(find(".open", hit).getAttribute("href")) }))], chosen);
  } catch { /* a notice says that the server is gone */ }
}

function show(offered, at = 0) {
  choices = offered;
  list.replaceChildren(...choices.map(({ label, hint }, number) => {
    const item = made("li", { id: `choice-${number}`, role: "option" }, made("span", { textContent: label }), made("span", { className: "quiet", textContent: hint }));
    item.addEventListener("click", () => take(number));
    return item;
  }));
  choose(at);
}

function choose(number) {
  chosen = Math.max(0, Math.min(choices.length - 1, number));
  [...list.children].forEach((item, at) => item.setAttribute("aria-selected", at === chosen));
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", `choice-${chosen}`);
}

function take(number) {
  palette.close();
  choices[number]?.act();
}

function openPalette() {
  if (!palette || palette.open) return;
  adding?.close();
  palette.showModal();
  field.select();
  offer();
  offerHits();
}

if (palette) {
  const soon = later(offerHits);
  field.addEventListener("input", () => { offer(); soon(); });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose(chosen + step);
    else if (event.key === "Enter") take(chosen);
    else return;
    event.preventDefault();
  });
}
for (const [id, open] of [["open-palette", openPalette], ["open-add", () => openAdd()]]) {
  const link = document.getElementById(id);
  if (link && palette) link.addEventListener("click", (event) => { event.preventDefault(); open(); });
}
document.addEventListener("click", ({ target }) => { for (const menu of all(".menu[open]")) if (!menu.contains(target)) menu.open = false; });

// The inbox: one key for each decision, about the item that has the focus or the first one; several at once by their boxes

const items = () => all("#items .item");
const current = () => document.activeElement.closest?.(".item, .closable, .failure") ?? items()[0];

function step(by) {
  const at = items().indexOf(document.activeElement.closest?.(".item"));
  const to = items()[Math.max(0, Math.min(items().length - 1, at < 0 ? 0 : at + by))];
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}

function tick() {
  const box = find(".choose input", current());
  if (box) box.checked = !box.checked;
}

for (const label of all("[data-all]")) {
  label.hidden = false;
  find("input", label).addEventListener("change", ({ target }) => { for (const box of all(".choose input")) box.checked = target.checked; });
}

// If the newest statements have no pairs, go on with older ones until a pair is found.
async function further() {
  for (let number = 0; number < MOST_LOOKS; number += 1) {
    const link = document.getElementById("further");
    if (!link || items().length || document.hidden) return;
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) return;
      const toast = find("main .toast"); // about a change that led here: its Undo stays
      find("main").replaceChildren(...find("main", parse(await answer.text())).childNodes);
      if (toast) find("main").prepend(toast);
      history.replaceState(null, "", link.href);
    } catch {
      return; // another notice says that the server is gone
    }
  }
}

if (find("[data-pairs]")) further();

// Show counts in place as soon as they are ready.
async function recount() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const page = answer.ok ? parse(await answer.text()) : null;
    if (!page || page.getElementById("running")) return setTimeout(recount, 1000);
    find("main").replaceChildren(...find("main", page).childNodes);
  } catch {
    setTimeout(recount, 3000);
  }
}

if (document.getElementById("running")) setTimeout(recount, 1000);

// Keys

// A message about the last change can be dismissed

for (const toast of all(".toast")) {
  const button = made("button", { type: "button", className: "dismiss", textContent: "×", title: "Dismiss (Esc)" });
  button.setAttribute("aria-label", "Dismiss");
  button.addEventListener("click", () => toast.remove());
  toast.append(button);
}

// A help overlay, and a menu that is closed where there is little room

const help = document.getElementById("help");
const helper = document.getElementById("open-help");
if (helper && help) {
  helper.hidden = false;
  helper.addEventListener("click", () => help.showModal());
  find("[data-close]", help).addEventListener("click", () => help.close());
}
const filters = find(".filters");
if (filters && !find(".state", filters) && !matchMedia("(min-width: 46rem)").matches) filters.open = false;

// A menu or tabs that scroll on a phone: with the current one in sight.
for (const link of all(".top nav [aria-current], .tabs [aria-current]")) {
  const row = link.closest("ul");
  if (row.scrollWidth > row.clientWidth) row.scrollLeft = link.offsetLeft - row.offsetLeft - row.clientWidth / 3;
}

let going = -SEQUENCE; // when g was pressed

function go(key) {
  const link = find(`.top nav [data-go="${CSS.escape(key)}"]`);
  going = -SEQUENCE;
  if (link) location.assign(link.href);
  return Boolean(link);
}

const typing = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

function move(by) {
  const links = all("main a.open");
  if (!links.length) return false;
  const at = links.indexOf(document.activeElement);
  const to = at < 0 ? (by > 0 ? 0 : -1) : at + by;
  if (to < 0) {
    if (!input) return at > 0;
    input.focus();
    return true;
  }
  links[Math.min(to, links.length - 1)].focus();
  return true;
}

function escape(event) {
  // Nothing typed is thrown away: a field only loses the focus, and a page with something unsaved asks before it is left.
  const menu = find(".menu[open]");
  const toast = find(".toast");
  if (toast && !menu && !typing(event.target)) toast.remove();
  else if (menu) { menu.open = false; find("summary", menu).focus(); }
  else if (typing(event.target)) { event.preventDefault(); event.target.blur(); }
  else if (input) { input.focus(); input.select(); }
  else if (history.length > 1) history.back();
  else location.assign(root);
}

// Keys about the hit that has the focus, or the first one: why it was found, and its source; and the filters.
function about(key) {
  const hit = document.activeElement.closest?.(".hit, .item, .event") ?? find(".hit");
  const target = { w: hit && find(".why summary", hit), s: hit && find("a.source", hit) }[key];
  if (key === "f" && filters) {
    filters.open = true;
    find("select", filters).focus();
    return true;
  }
  target?.click();
  return Boolean(target);
}

// The tab at the left or at the right of the current one.
function turn(by) {
  const tabs = all(".tabs a");
  const tab = tabs[tabs.findIndex((one) => one.hasAttribute("aria-current")) + by];
  if (tab) location.assign(tab.href);
  return Boolean(tab);
}

function press(key) {
  if (performance.now() - going < SEQUENCE && go(key)) return true;
  if (key === "g") { going = performance.now(); return true; }
  if (key === "?" && help) { help.showModal(); return true; }
  if (key === "n" && adding) { openAdd(); return true; }
  const acts = { j: () => step(1), k: () => step(-1), x: tick };
  if (about(key)) return true;
  const inside = current();
  const listed = items().length > 0;
  if (!listed && (key === "j" || key === "k")) return move(key === "j" ? 1 : -1);
  if (listed && acts[key]) { acts[key](); return true; }
  const selector = `[data-key="${CSS.escape(key)}"]`;
  // What belongs to one line of a list needs the focus there.
  const others = all(`main ${selector}`).filter((one) => !one.closest(".item, .closable, .failure"));
  const pressed = (inside && find(selector, inside)) || others[0];
  if (!pressed || pressed.disabled) return false;
  pressed.click();
  if (pressed.matches("summary")) find("textarea, input:not([type=hidden])", pressed.parentElement)?.focus();
  return true;
}

// Ctrl Enter sends the current form, as a click on its first button would.
function submitWithKey(event) {
  const sent = typing(event.target)?.form;
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing || !sent) return false;
  event.preventDefault();
  const button = find("button:not([type=button])", sent);
  if (!event.repeat && !button?.disabled) sent.requestSubmit(button); // disabled while it is being sent
  return true;
}

document.addEventListener("keydown", (event) => {
  if (submitWithKey(event)) return;
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && palette) { event.preventDefault(); openPalette(); return; }
  const undo = document.getElementById("undo");
  if (undo && event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !typing(event.target) && !find("dialog[open]")) { event.preventDefault(); undo.requestSubmit(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing || find("dialog[open]")) return;
  const inField = typing(event.target);
  if (event.key === "/" && !inField) {
    event.preventDefault();
    const search = find("main [type=search]");
    if (search) { search.focus(); search.select(); } else location.assign(searchAddress(""));
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (!inField || event.target === input)) {
    if (!(event.target === input && event.key === "ArrowUp") && move(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
  } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !inField && !event.target.closest("svg, [tabindex='0']")) {
    if (turn(event.key === "ArrowRight" ? 1 : -1)) event.preventDefault();
  } else if (event.key === "Escape") escape(event);
  else if ((event.key.length === 1 || event.key === "Delete") && !inField && !event.repeat && press(event.key)) event.preventDefault();
});
