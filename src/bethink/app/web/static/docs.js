"use strict";
const make = (tag, text, ...children) => {
  const node = document.createElement(tag);
  if (text) node.textContent = text;
  node.append(...children);
  return node;
};
const named = (node, name) => { node.className = name; return node; };
let description;

const followed = (schema) => schema && schema.$ref ? description.components.schemas[schema.$ref.split("/").pop()] : schema || {};

function kind(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.type === "array") return "list of " + kind(schema.items);
  return schema.type || "any";
}

function example(schema, depth = 0) {
  const shape = followed(schema);
  if (depth > 4) return null;
  if (shape.examples) return shape.examples[0];
  if (shape.default !== undefined) return shape.default;
  if (shape.anyOf) return example(shape.anyOf[0], depth + 1);
  if (shape.enum) return shape.enum[0];
  if (shape.type === "array") return shape.minItems ? [example(shape.items, depth + 1)] : [];
  if (shape.type === "object") {
    const required = new Set(shape.required || []);
    const entries = Object.entries(shape.properties || {}).filter(([name]) => required.has(name) || depth);
    return Object.fromEntries(entries.filter(([name, of]) => required.has(name)).map(([name, of]) => [name, example(of, depth + 1)]));
  }
  return { string: "text", integer: 1, number: 1, boolean: false }[shape.type] ?? null;
}

function fields(schema) {
  const shape = followed(schema), required = new Set(shape.required || []);
  const rows = Object.entries(shape.properties || {}).map(([name, of]) =>
    make("tr", "", make("td", "", make("code", name + (required.has(name) ? " *" : ""))), make("td", kind(of)), make("td", of.description || "")));
  return make("table", "", make("tr", "", make("th", "field"), make("th", "type"), make("th", "")), ...rows);
}

function operation(path, method, about) {
  const inside = named(make("div", ""), "inside");
  inside.append(make("p", about.description));
  const inputs = [];
  if (about.parameters.length) {
    const rows = about.parameters.map((parameter) => {
      const input = make("input");
      input.setAttribute("aria-label", parameter.name);
      inputs.push([parameter, input]);
      const label = make("code", parameter.name + (parameter.required ? " *" : ""));
      return make("tr", "", make("td", "", label), make("td", parameter.in + ", " + kind(parameter.schema)), make("td", parameter.description || ""), make("td", "", input));
    });
    inside.append(make("table", "", make("tr", "", make("th", "parameter"), make("th", "where"), make("th", ""), make("th", "value")), ...rows));
  }
  let body = null;
  if (about.requestBody) {
    const schema = about.requestBody.content["application/json"].schema;
    inside.append(make("h3", "Body: " + kind(schema)), fields(schema));
    body = make("textarea");
    body.value = JSON.stringify(example(schema), null, 2);
    body.spellcheck = false;
    inside.append(body);
  }
  const button = make("button", "Send"), answer = make("pre", "");
  answer.hidden = true;
  button.addEventListener("click", async () => {
    let address = path;
    const query = new URLSearchParams(), headers = {};
    for (const [parameter, input] of inputs) {
      if (!input.value) continue;
      if (parameter.in === "path") address = address.replace("{" + parameter.name + "}", encodeURIComponent(input.value));
      else if (parameter.in === "header") headers[parameter.name] = input.value;
      else for (const value of parameter.schema.type === "array" ? input.value.split(",") : [input.value]) query.append(parameter.name, value.trim());
    }
    const token = document.getElementById("token").value.trim();
    if (token) headers.Authorization = "Bearer " + token;
    if (body) headers["Content-Type"] = "application/json";
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const found = await fetch(address + (query.size ? "?" + query : ""), { method: method.toUpperCase(), headers, body: body ? body.value : undefined });
      const text = await found.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* lines, or nothing */ }
      answer.textContent = found.status + " " + found.statusText + "\n\n" + shown.slice(0, 100000);
    } catch (error) {
      answer.textContent = String(error);
    }
  });
  const good = Object.entries(about.responses).filter(([status]) => status < 300);
  for (const [status, found] of good) {
    const schema = (found.content["application/json"] || {}).schema;
    inside.append(make("h3", "Response " + status + (schema ? ": " + kind(schema) : ": one JSON object per line")));
    if (schema) inside.append(fields(schema));
  }
  inside.append(make("p", "Errors: application/problem+json with a title, a detail and a hint."), button, answer);
  const summary = make("summary", "", named(make("span", method.toUpperCase()), "method"), make("code", path), named(make("span", about.summary), "about"));
  return make("details", "", summary, inside);
}

(async () => {
  description = await (await fetch("openapi.json")).json();
  document.getElementById("about").textContent = description.info.description + " Version " + description.info.version + ".";
  const groups = new Map();
  for (const [path, methods] of Object.entries(description.paths))
    for (const [method, about] of Object.entries(methods)) {
      const group = about.tags[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(operation(path, method, about));
    }
  for (const [group, found] of groups) document.getElementById("operations").append(make("h2", group), ...found);
})();
