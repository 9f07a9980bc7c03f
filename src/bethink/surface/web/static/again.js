// Looks again while something is being counted, and shows it in place, so that nobody has to reload.

const EVERY = 1000; // milliseconds

async function look() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return setTimeout(look, EVERY * 3);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (page.getElementById("running")) return setTimeout(look, EVERY);
    document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
  } catch {
    setTimeout(look, EVERY * 3); // the server is gone; site.js says so
  }
}

setTimeout(look, EVERY);
