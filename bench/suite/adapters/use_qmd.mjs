// qmd without its models: a Markdown file per memory, found by BM25. It wants every word of a query, so the question is asked as it
// stands and then word by word, as an agent would; what holds more of the words comes first.
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const home = join(process.env.SUITE_PEER, "node_modules/@tobilu/qmd");
const { createStore } = await import(join(home, "dist/index.js"));
const folder = mkdtempSync(join(process.env.SUITE_WORK, "memory-"));
const COMMON = new Set("the and for with are was were does did what which who when where why how our your have has had this that from into can not use used you they she his her its".split(" "));
let round = 0, count = 0, store = null, notes = "", ids = [];

const verbs = {
  async reset() {
    if (store) await store.close();
    [round, count, ids] = [round + 1, 0, []];
    notes = join(folder, `round-${round}`);
    mkdirSync(notes);
    const config = { collections: { notes: { path: notes, pattern: "**/*.md" } } };
    store = await createStore({ dbPath: join(folder, `${round}.sqlite`), config });
  },
  async add(item) {
    await verbs.load({ items: [item] });
  },
  async load({ items }) {
    for (const item of items) {
      ids[count] = { id: item.id ?? "", text: item.text };
      writeFileSync(join(notes, `${count++}.md`), item.text);
    }
    await store.update();
  },
  async ask({ question, k }) {
    const words = [...new Set(question.match(/[\p{L}\p{N}_]{3,}/gu) ?? [])].filter((word) => !COMMON.has(word.toLowerCase()));
    const score = new Map();
    for (const [weight, query] of [[1000, question], ...words.map((word) => [1, word])]) {
      for (const [rank, hit] of (await store.searchLex(query, { limit: 200 })).entries()) {
        const key = Number(hit.displayPath.match(/(\d+)\.md$/)[1]);
        score.set(key, (score.get(key) ?? 0) + weight + 1 / (60 + rank));
      }
    }
    const best = [...score].sort((one, other) => other[1] - one[1]).slice(0, k);
    return best.map(([key]) => ids[key]);
  },
  async prompt({ text }) {
    return verbs.ask({ question: text, k: 2 });
  },
  async read({ turns, name }) {
    await verbs.load({ items: turns.map((turn, at) => ({ id: `${name}#${at}`, text: turn.text })) });
  },
  async learn({ text, time }) {
    await verbs.load({ items: [{ id: time, text }] });
  },
  async fail({ text }) {
    return (await verbs.ask({ question: text, k: 1 }))[0]?.text ?? "";
  },
  async answer({ question, tokens }) {
    const texts = (await verbs.ask({ question, k: 60 })).map((hit) => hit.text);
    return texts.join("\n").slice(0, 4 * tokens);
  },
  async fill({ texts }) {
    await verbs.load({ items: texts.map((text) => ({ text })) });
  },
  async briefing() {
    return "";
  },
  async stats() {
    const version = JSON.parse(readFileSync(join(home, "package.json"))).version;
    const node = process.execPath;
    return { version, folder, mcp: { command: [node, join(home, "dist/cli/qmd.js"), "mcp"], env: { HOME: folder } } };
  },
};

console.log = console.error;
for await (const line of createInterface({ input: process.stdin })) {
  const { verb, ...rest } = JSON.parse(line);
  let answer;
  if (verb === "talk") answer = { unsupported: "It has no way to read a conversation by itself." };
  else
    try {
      answer = { ok: (await verbs[verb](rest)) ?? null };
    } catch (error) {
      console.error(error);
      answer = { error: String(error) };
    }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
process.exit(0);
