// One key for each decision: it is about the item that has the focus, or the first one. j and k go from item to item.

document.body.dataset.keys = "own"; // the page's keys are handled here

const MOST_LOOKS = 200;
const typed = (target) => target.closest?.("input, textarea, select, [contenteditable]");
const items = () => [...document.querySelectorAll("#items > .item")];

function current() {
  return document.activeElement.closest?.(".item") ?? items()[0];
}

function move(step) {
  const all = items();
  const at = all.indexOf(document.activeElement.closest?.(".item"));
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

// Where a look at the newest statements found nothing, the next ones are looked at until something is found.
async function further() {
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    const link = document.getElementById("further");
    if (!link || items().length || document.hidden) return;
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
      history.replaceState(null, "", link.href);
    } catch {
      return; // the server is gone; site.js says so
    }
  }
}

if (document.querySelector("[data-pairs]")) further();

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing || event.repeat) return;
  if (typed(event.target) || event.key.length !== 1 || event.key === "/") return;
  const item = current();
  if (event.key === "u") {
    const undo = document.querySelector('main .notice [data-key="u"]');
    if (undo) { event.preventDefault(); undo.click(); }
  } else if (event.key === "j" || event.key === "k") {
    event.preventDefault();
    move(event.key === "j" ? 1 : -1);
  } else {
    const button = item?.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (button && !button.disabled) { event.preventDefault(); button.click(); }
  }
});
