// Draws the graph around a focus. The layout is d3-force's; everything else is here. The list on the page says the same, so
// the drawing only adds to it. Text from memories goes in by textContent alone.

const SVG = "http://www.w3.org/2000/svg";
const FRAME = 12; // milliseconds of layout between two drawings
const LONGEST = 34; // characters of a label
const THING = "about:";
const EXPANDED = 30; // nodes that opening one of them brings
const MOST = 500; // nodes that are drawn
const SHOWN = 6; // relations of the chosen node that are listed
const CROWD = 120; // nodes from which only the things are named, until one looks closer
const WORDS = { supersedes: "replaces", "← supersedes": "replaced by", may_replace: "may replace", "← may_replace": "may be replaced by" };
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const figure = document.getElementById("graph");
const drawing = document.getElementById("drawing");
const chosen = document.getElementById("chosen");

const nodes = new Map();
const edges = new Map();
let view = { x: 0, y: 0, scale: 1 };
let selected = null;
let hovered = null;
let focus = new Set();
let timed = false; // whether the oldest is at the left
let run = 0; // number of the layout that is under way

function made(name, attributes = {}, parent = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

const DIRECTED = ["supersedes", "answers", "builds_on", "may_replace"];
const defs = made("defs", {}, drawing);
for (const type of ["strong", "supersedes"]) {
  const marker = made("marker", { id: `arrow-${type}`, class: `head ${type}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, defs);
  made("path", { d: "M0 0 8 4 0 8z" }, marker);
}
const camera = made("g", {}, drawing);
const dates = made("g", { class: "dates" }, camera);
const lines = made("g", { class: "edges" }, camera);
const dots = made("g", { class: "dots" }, camera);
const names = made("g", { class: "names" }, camera); // above everything, so that no dot covers one

// The graph

const isThing = (id) => id.startsWith(THING);
const radius = (node) => Math.min(16, 5 + 1.6 * Math.sqrt(node.degree));

function take(found, near = null) {
  let fresh = 0;
  for (const given of found.nodes) {
    if (nodes.has(given.id)) continue;
    fresh += 1;
    const angle = nodes.size * 2.4; // spread evenly around what they belong to
    const node = { ...given, degree: 0, x: (near?.x ?? 0) + 40 * Math.cos(angle), y: (near?.y ?? 0) + 40 * Math.sin(angle) };
    nodes.set(given.id, node);
    draw(node);
  }
  for (const given of found.edges) {
    const key = `${given.source} ${given.type} ${given.target}`;
    if (edges.has(key) || !nodes.has(given.source) || !nodes.has(given.target)) continue;
    const edge = { source: nodes.get(given.source), target: nodes.get(given.target), type: given.type };
    edge.line = made("line", { class: given.type === "mentions" ? "edge" : `edge strong ${given.type}` }, lines);
    if (DIRECTED.includes(given.type)) edge.line.setAttribute("marker-end", `url(#arrow-${given.type === "supersedes" ? "supersedes" : "strong"})`);
    made("title", {}, edge.line).textContent = given.type.replaceAll("_", " ");
    edge.source.degree += 1;
    edge.target.degree += 1;
    edges.set(key, edge);
  }
  for (const node of nodes.values()) shape(node);
  return fresh;
}

function draw(node) {
  node.group = made("g", { class: isThing(node.id) ? "node thing" : `node kind-${node.type}` }, dots);
  node.group.classList.toggle("past", Boolean(node.replaced));
  node.mark = made(isThing(node.id) ? "rect" : "circle", {}, node.group);
  node.text = made("text", {}, names);
  node.text.textContent = node.label.length > LONGEST ? `${node.label.slice(0, LONGEST - 1)}…` : node.label;
  node.wide = (node.text.getComputedTextLength() || node.text.textContent.length * 7) / 2 + 3; // half of it
  made("title", {}, node.group).textContent = `${node.type}: ${node.label}`;
  node.group.addEventListener("pointerdown", (event) => grab(event, node));
  node.group.addEventListener("dblclick", (event) => { event.preventDefault(); expand(node); });
  node.group.addEventListener("pointerenter", () => { hovered = node; label(); });
  node.group.addEventListener("pointerleave", () => { hovered = null; label(); });
}

function shape(node) {
  const size = radius(node);
  if (isThing(node.id)) for (const [key, value] of Object.entries({ x: -size, y: -size, width: 2 * size, height: 2 * size, rx: 3 })) node.mark.setAttribute(key, value);
  else node.mark.setAttribute("r", size);
  node.group.classList.toggle("focus", focus.has(node.id));
}

// Layout: a little at a time, so that the page stays quick

const simulation = window.d3.forceSimulation().stop();

// Whatever many are connected to pulls on none of them much: groups then form around what few share.
const pull = (edge) => (edge.type === "mentions" ? Math.min(0.5, 3 / Math.max(edge.source.degree, edge.target.degree) ** 1.3) : 0.25);

async function settle(fitting) {
  arrange();
  const mine = ++run;
  const list = [...nodes.values()];
  const many = list.length;
  const tall = box().height > box().width;
  simulation
    .nodes(list)
    .force("link", window.d3.forceLink([...edges.values()]).distance((edge) => (edge.type === "mentions" ? 70 : 50)).strength((edge) => (timed ? 0.3 : 1) * pull(edge)))
    .force("charge", window.d3.forceManyBody().strength(many > CROWD ? -70 : timed ? -320 : -170).distanceMax(400))
    .force("collide", window.d3.forceCollide((node) => radius(node) + (many > CROWD ? 6 : 12)))
    .force("x", timed ? window.d3.forceX((node) => when(node)).strength((node) => (node.at ? 0.9 : 0.03)) : window.d3.forceX().strength(tall ? 0.08 : 0.035))
    .force("y", window.d3.forceY().strength(timed ? 0.02 : tall ? 0.035 : 0.08))
    .alpha(fitting ? 1 : 0.45)
    .alphaDecay(many > 200 ? 0.035 : 0.025);
  figure.dataset.state = "moving";
  figure.classList.toggle("crowd", many > CROWD);
  while (simulation.alpha() > 0.02) {
    const until = performance.now() + (many > CROWD ? 4 * FRAME : FRAME);
    while (performance.now() < until && simulation.alpha() > 0.02) simulation.tick();
    if (!calm.matches) { if (fitting) fit(); place(false); }
    await new Promise(requestAnimationFrame);
    if (mine !== run) return; // something else began meanwhile
  }
  if (fitting) fit();
  place();
  figure.dataset.state = "still";
}

function place(named = true) {
  for (const { line, source, target } of edges.values()) {
    const [right, down] = [target.x - source.x, target.y - source.y];
    const short = (radius(target) + 2) / Math.max(1, Math.hypot(right, down)); // an arrow ends where the node begins
    line.setAttribute("x1", source.x.toFixed(1));
    line.setAttribute("y1", source.y.toFixed(1));
    line.setAttribute("x2", (target.x - right * short).toFixed(1));
    line.setAttribute("y2", (target.y - down * short).toFixed(1));
  }
  for (const node of nodes.values()) node.group.setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`);
  look(named);
}

// By time: memories at their day, from the oldest at the left to the newest at the right

const known = () => [...nodes.values()].filter((node) => node.at).map((node) => Date.parse(node.at)).sort((a, b) => a - b);
const [LEAST, MOST_APART] = [16, 90]; // between two memories that follow each other

// Places by order, not by distance: a quiet year takes no more room than a busy day.
function when(node) {
  return node.at ? (rank.get(Date.parse(node.at)) ?? 0) : 0;
}

let rank = new Map();

function arrange() {
  const times = known();
  const step = Math.min(MOST_APART, Math.max(LEAST, (0.9 * box().width) / Math.max(1, times.length)));
  rank = new Map(times.map((time, at) => [time, (at - times.length / 2) * step]));
  dates.replaceChildren();
  if (!timed || !times.length) return;
  let last = "";
  for (const time of times) {
    const day = new Date(time).toISOString().slice(0, 10);
    if (day === last) continue;
    const text = made("text", { class: "date" }, dates);
    text.textContent = day;
    text.dataset.x = rank.get(time);
    last = day;
  }
}

// Dates stay at the bottom of the drawing, and none covers another.
function mark() {
  const bottom = box().height - 8;
  let free = -Infinity;
  for (const text of dates.children) {
    const x = Number(text.dataset.x);
    const right = view.x + x * view.scale;
    text.setAttribute("transform", `translate(${x.toFixed(1)} ${((bottom - view.y) / view.scale).toFixed(1)}) scale(${(1 / view.scale).toFixed(3)})`);
    text.classList.toggle("off", right < free);
    if (right >= free) free = right + 84;
  }
}

function byTime() {
  timed = !timed;
  figure.querySelector("[data-do=time]").setAttribute("aria-pressed", timed);
  settle(true);
}

// The view

const box = () => drawing.getBoundingClientRect();

function look(named = true) {
  camera.setAttribute("transform", `translate(${view.x.toFixed(1)} ${view.y.toFixed(1)}) scale(${view.scale.toFixed(3)})`);
  names.classList.toggle("off", !named);
  mark();
  if (named) label();
}

function fit() {
  const { width, height } = box();
  const xs = [...nodes.values()].map((node) => node.x);
  const ys = [...nodes.values()].map((node) => node.y);
  const [left, right, top, bottom] = [Math.min(...xs) - 60, Math.max(...xs) + 60, Math.min(...ys) - 30, Math.max(...ys) + 40];
  const scale = Math.min(1.6, width / (right - left), height / (bottom - top));
  view = { scale, x: width / 2 - (scale * (left + right)) / 2, y: height / 2 - (scale * (top + bottom)) / 2 };
}

function zoom(factor, at = null) {
  const { width, height } = box();
  const [x, y] = at ?? [width / 2, height / 2];
  const scale = Math.min(6, Math.max(0.1, view.scale * factor));
  view = { scale, x: x - ((x - view.x) * scale) / view.scale, y: y - ((y - view.y) * scale) / view.scale };
  look();
}

// Labels: those that matter most first, below, above or beside their node, and none over another label or over a node
const PLACES = ["below", "above", "right", "left"];

function label() {
  const { width } = box();
  const at = (node) => [view.x + node.x * view.scale, view.y + node.y * view.scale, radius(node) * view.scale];
  const dotted = [...nodes.values()].map((node) => {
    const [x, y, size] = at(node);
    return { node, left: x - size, right: x + size, top: y - size, bottom: y + size };
  });
  const taken = [];
  const beside = new Set(selected ? ties(selected).map(({ other }) => other) : []);
  const crowd = nodes.size > CROWD;
  const weight = (node) => node.degree + (node === hovered ? 1e7 : 0) + (node === selected ? 1e6 : 0) + (focus.has(node.id) ? 1e5 : 0) + (beside.has(node) ? 1e4 : 0);
  const order = [...nodes.values()].sort((a, b) => weight(b) - weight(a));
  for (const node of order) {
    const [x, y, size] = at(node);
    const high = 8; // half of a label
    const centres = {
      below: [x, y + size + high + 1],
      above: [x, y - size - high],
      right: [x + size + node.wide + 2, y],
      left: [x - size - node.wide - 2, y],
    };
    const boxes = PLACES.map((place) => {
      const [across, down] = centres[place];
      return { across, down, left: across - node.wide, right: across + node.wide, top: down - high, bottom: down + high };
    });
    const covers = (one, other) => one.right >= other.left && one.left <= other.right && one.bottom >= other.top && one.top <= other.bottom;
    const fits = (one) => one.left > 0 && one.right < width && !taken.some((other) => covers(one, other)) && !dotted.some((other) => other.node !== node && covers(one, other));
    const wanted = beside.has(node) || focus.has(node.id) || (crowd ? view.scale > 1.1 || (isThing(node.id) && node.degree > 2) : view.scale > 0.3);
    const mine = boxes.find(fits) ?? (node === selected || node === hovered ? boxes[0] : null);
    const shown = mine && (node === selected || node === hovered || wanted);
    node.text.classList.toggle("off", !shown);
    if (!shown) continue;
    taken.push(mine);
    node.text.setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)}) scale(${(1 / view.scale).toFixed(3)})`);
    node.text.setAttribute("x", (mine.across - x).toFixed(1));
    node.text.setAttribute("y", (mine.down - y + 4).toFixed(1));
  }
}

function ties(node) {
  const found = [];
  for (const { source, target, type } of edges.values()) {
    if (source === node) found.push({ type, other: target });
    else if (target === node) found.push({ type: `← ${type}`, other: source });
  }
  return found;
}

// Choosing

function choose(node) {
  selected = node;
  const near = new Set(node ? [node, ...ties(node).map(({ other }) => other)] : []);
  for (const one of nodes.values()) {
    one.group.classList.toggle("chosen", one === node);
    one.group.classList.toggle("faint", Boolean(node) && !near.has(one));
  }
  for (const { line, source, target } of edges.values()) line.classList.toggle("faint", Boolean(node) && source !== node && target !== node);
  tell(node);
  label();
}

function link(text, address) {
  const element = document.createElement("a");
  element.className = "button";
  element.textContent = text;
  element.href = address;
  return element;
}

function centre(node) {
  const address = new URL(figure.dataset.page, location.href);
  address.searchParams.set("focus", node.id);
  return address.pathname + address.search;
}

function page(node) {
  return isThing(node.id) ? centre(node) : figure.dataset.memory.replace("/memory/ID", "/memory/" + encodeURIComponent(node.id));
}

function tell(node) {
  if (!node) return;
  const line = document.createElement("p");
  const kind = document.createElement("span");
  kind.className = "quiet";
  kind.textContent = `${node.type}${node.at ? ` · ${node.at.slice(0, 10)}` : ""}${node.replaced ? " · replaced" : ""} · ${node.degree} connection${node.degree === 1 ? "" : "s"} `;
  const text = document.createElement("bdi");
  text.textContent = node.label;
  line.append(kind, text);
  const more = document.createElement("button");
  more.type = "button";
  more.textContent = "Expand";
  more.dataset.do = "expand";
  more.addEventListener("click", () => expand(node));
  const actions = document.createElement("p");
  actions.className = "actions";
  actions.append(more, link("Center", centre(node)));
  if (!isThing(node.id)) actions.append(link("Open", page(node)));
  chosen.replaceChildren(line, related(node), actions);
}

// How it is related to other memories; what it is about can be seen.
function related(node) {
  const list = document.createElement("ul");
  list.className = "ties";
  for (const { type, other } of ties(node).filter(({ type }) => !type.endsWith("mentions")).slice(0, SHOWN)) {
    const item = document.createElement("li");
    const how = document.createElement("span");
    how.className = "relation";
    how.textContent = `${WORDS[type] ?? type.replaceAll("_", " ")} `;
    const text = document.createElement("bdi");
    text.textContent = other.label;
    item.append(how, text);
    list.append(item);
  }
  return list;
}

async function expand(node) {
  choose(node);
  const address = new URL(figure.dataset.source, location.href);
  address.searchParams.set("open", node.id);
  address.searchParams.set("limit", Math.min(node.degree + EXPANDED, MOST));
  let message = "The server does not respond. Try again.";
  try {
    const answer = await fetch(address);
    if (answer.ok) {
      const fresh = take(await answer.json(), node);
      message = fresh ? `${fresh} more.` : "Nothing else is connected.";
      if (fresh) settle(false);
    } else if (answer.status === 401) location.reload();
  } catch { /* message says so */ }
  choose(node);
  const note = document.createElement("p");
  note.className = "quiet";
  note.textContent = message;
  chosen.append(note);
}

// By pointer: the paper moves the view, a node moves by itself

let held = null;

function grab(event, node = null) {
  if (event.button) return;
  event.stopPropagation();
  if (node) choose(node);
  held = { node, x: event.clientX, y: event.clientY };
  drawing.setPointerCapture(event.pointerId);
}

drawing.addEventListener("pointerdown", (event) => grab(event));
drawing.addEventListener("pointermove", (event) => {
  if (!held) return;
  const [right, down] = [event.clientX - held.x, event.clientY - held.y];
  held = { ...held, x: event.clientX, y: event.clientY };
  if (held.node) {
    held.node.x += right / view.scale;
    held.node.y += down / view.scale;
    place();
  } else {
    view = { ...view, x: view.x + right, y: view.y + down };
    look();
  }
});
for (const name of ["pointerup", "pointercancel"]) drawing.addEventListener(name, () => { held = null; });
drawing.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && document.activeElement !== drawing) return; // do not catch the wheel while the user scrolls past
  event.preventDefault();
  const { left, top } = box();
  zoom(Math.exp(-event.deltaY / 400), [event.clientX - left, event.clientY - top]);
}, { passive: false });

// By key

const AHEAD = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

function toward([right, down]) {
  const from = selected ?? [...nodes.values()].find((node) => focus.has(node.id)) ?? nodes.values().next().value;
  if (!selected) return choose(from);
  let best = null;
  let least = Infinity;
  for (const node of nodes.values()) {
    const [x, y] = [node.x - from.x, node.y - from.y];
    const along = x * right + y * down;
    const aside = Math.abs(x * down) + Math.abs(y * right);
    if (node === from || along <= 0) continue;
    const cost = along + 2 * aside;
    if (cost < least) [best, least] = [node, cost];
  }
  if (best) { choose(best); reveal(best); }
}

function reveal(node) {
  const { width, height } = box();
  const [x, y] = [view.x + node.x * view.scale, view.y + node.y * view.scale];
  if (x < 30 || y < 30 || x > width - 30 || y > height - 30) {
    view = { ...view, x: view.x + width / 2 - x, y: view.y + height / 2 - y };
    look();
  }
}

drawing.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    Enter: () => selected && expand(selected),
    o: () => selected && location.assign(page(selected)),
    t: byTime,
    "+": () => zoom(1.25),
    "-": () => zoom(0.8),
    0: () => { fit(); look(); },
    Escape: () => { choose(null); chosen.replaceChildren(); },
  };
  if (AHEAD[event.key]) toward(AHEAD[event.key]);
  else if (acts[event.key]) acts[event.key]();
  else return;
  event.preventDefault();
});

const BUTTONS = { time: byTime, in: () => zoom(1.25), out: () => zoom(0.8), fit: () => { fit(); look(); } };
for (const button of figure.querySelectorAll("[data-do]")) button.addEventListener("click", BUTTONS[button.dataset.do]);
new ResizeObserver(() => { if (nodes.size) { fit(); look(); } }).observe(drawing);

// Begin

async function begin() {
  const answer = await fetch(figure.dataset.source).catch(() => null); // where the server is gone, the list has to do
  if (!answer?.ok) return;
  const found = await answer.json();
  focus = new Set(found.focus);
  figure.hidden = false;
  take(found);
  await settle(true);
}

begin();
