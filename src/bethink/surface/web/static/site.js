// What every page can do beyond plain links and forms: results while one types, keys, and patience with a server that is gone.
// Everything works without it, only slower.

const IDLE = 20000; // milliseconds between two looks whether the server is there
const GONE = 2000; // and while it is not
const TYPING = 120; // milliseconds without a key before a search is sent

const gone = document.getElementById("gone");
const form = document.getElementById("search");
const results = document.getElementById("results");
const input = document.getElementById("q");

// Where this browser's pages are
//
// The cookie of a session is sent to no other path, so that servers on other ports do not see it. Storage knows ports: an address
// without the path, such as a bookmark, is led to it from here.

const room = document.body.dataset.room;
const signin = document.querySelector("[data-signin]");
if (room) localStorage.setItem("room", room);
if (signin) {
  const known = localStorage.getItem("room");
  const here = location.pathname.match(/^\/~[^/]+/)?.[0] ?? "";
  const rest = location.pathname === "/enter" ? "/" : location.pathname.slice(here.length) + location.search;
  if (signin.dataset.signin === "left" || known === here) localStorage.removeItem("room");
  else if (known) location.replace(known + rest);
}
const root = `${room ?? ""}/`;

// The server

let alive = true;
let next = 0;
const waiting = new Set(); // what to do once it is back

function say(works) {
  if (works === alive) return;
  alive = works;
  look();
  gone.hidden = works;
  if (works) {
    const all = [...waiting];
    waiting.clear();
    for (const again of all) again();
  }
}

async function ping() {
  try {
    const answer = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    say(answer.ok);
  } catch {
    say(false);
  }
}

function look() {
  clearTimeout(next);
  next = setTimeout(async () => { if (!document.hidden || !alive) await ping(); look(); }, alive ? IDLE : GONE);
}

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
  const shown = fields.size ? `${root}?${fields}` : root;
  fields.set("part", "results");
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${root}?${fields}`, { signal: running.signal, cache: "no-store" });
    const text = await answer.text();
    if (number !== asked) return; // a newer question is on its way
    say(true);
    if (answer.status === 401) return location.assign(shown);
    const page = new DOMParser().parseFromString(text, "text/html");
    // A page for trouble comes whole; of it only the inside is shown here.
    results.replaceChildren(...(page.querySelector("main") ?? page.body).childNodes);
    document.getElementById("told").textContent = results.querySelector(".count, h2, [role=alert]")?.textContent ?? "";
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

if (form && results) {
  let timer = 0;
  const soon = () => { clearTimeout(timer); timer = setTimeout(search, TYPING); };
  form.addEventListener("input", soon);
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); search(); });
}

function tell(sentences) {
  // What went wrong, above a page that stays as it is: whatever was typed is still there.
  document.querySelector("main > .notice.told")?.remove();
  const notice = document.createElement("div");
  notice.className = "notice bad told";
  notice.setAttribute("role", "alert");
  notice.append(...sentences.map((sentence) => Object.assign(document.createElement("p"), { textContent: sentence })));
  document.querySelector("main").prepend(notice);
}

// Changes: sent from here, so that what was typed stays where it is when the server is gone

document.addEventListener("submit", async (event) => {
  const sent = event.target;
  if (sent.method !== "post" || sent.dataset.plain !== undefined) return;
  event.preventDefault();
  const button = event.submitter;
  const fields = new URLSearchParams(new FormData(sent, button));
  if (button) button.disabled = true;
  try {
    const answer = await fetch(sent.action, { method: "POST", body: fields });
    say(true);
    if (answer.redirected && answer.ok) {
      if (answer.url === location.href) location.reload(); else location.assign(answer.url);
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const trouble = page.querySelector(".trouble");
    if (trouble) tell([...trouble.querySelectorAll("h1, p:not(:has(a))")].map((part) => part.textContent.trim()));
    else document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
    document.querySelector("main [role=alert], main h1")?.scrollIntoView({ block: "center" });
  } catch {
    say(false);
  } finally {
    if (button) button.disabled = false;
  }
});

// Keys

function typing(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
}

function move(step) {
  const links = [...document.querySelectorAll("main a.open")];
  if (!links.length) return false;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : -1) : at + step;
  if (next < 0) {
    if (!input) return at > 0;
    input.focus();
    return true;
  }
  links[Math.min(next, links.length - 1)].focus();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing) return;
  const inField = typing(event.target);
  if (event.key === "/" && !inField) {
    event.preventDefault();
    if (input) { input.focus(); input.select(); } else location.assign(document.querySelector(".brand").href);
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (!inField || event.target === input)) {
    if (!(event.target === input && event.key === "ArrowUp") && move(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
  } else if (event.key === "Escape") {
    if (event.target === input && input.value) { input.value = ""; event.preventDefault(); search(); }
    else if (input && document.activeElement !== input) { input.focus(); input.select(); }
    else if (inField) event.target.blur();
    else if (!input && document.body.dataset.keys !== "own") history.length > 1 ? history.back() : location.assign(root);
  } else if (event.key.length === 1 && !inField) {
    const pressed = document.querySelector(`main [data-key="${CSS.escape(event.key)}"]`);
    if (!pressed || document.body.dataset.keys === "own") return;
    event.preventDefault();
    pressed.click();
    if (pressed.matches("summary")) pressed.parentElement.querySelector("textarea, input:not([type=hidden])")?.focus();
  }
});
