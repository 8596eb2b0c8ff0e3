// The live page. Whatever hosts, models and clients say is set as text: nothing here makes markup,
// and the server's policy forbids it.
"use strict";
const $ = (id) => document.getElementById(id);
const actions = $("hosts").dataset.actions.split(",").filter(Boolean);
/** Seconds without news after which a host counts as silent. */
const SILENT = 30;
/** Host's name -> {node, data, came, services: name -> node}. */
const hosts = new Map();
let connected = false;
/** The tab's title has the sign of the first line before it. */
const { title } = document;

function copy(template) {
  const node = $(template).content.firstElementChild.cloneNode(true);
  node.values = {};
  for (const place of node.querySelectorAll("[data-is]")) node.values[place.dataset.is] = place;
  return node;
}

/** Characters that turn a line around, hide or break it; a log keeps its lines. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Set an element's text; one that stays as it is costs no layout. */
function text(element, value) {
  const seen = String(value).replace(UNSEEN, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
  if (element.textContent !== seen) element.textContent = seen;
}

function show(node, name, value) {
  const element = node.values[name];
  text(element, value || (element.tagName === "DD" ? "-" : ""));
  if (element.tagName !== "DD") element.hidden = !value;
}

function attribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function mark(element, well, words) {
  text(element, `${well ? "✓" : "✗"} ${words}`);
  attribute(element, "class", well ? "good" : "bad");
}

function bar(place, parts) {
  const label = parts.map(([name, gib]) => `${name} ${gib.toFixed(1)} GiB`).join(", ");
  if (place.dataset.label === label) return;
  place.dataset.label = label;
  place.replaceChildren();
  if (!parts.length) return;
  const total = parts.reduce((sum, [, gib]) => sum + gib, 0) || 1;
  const svg = $("bar").content.firstElementChild.cloneNode(true);
  svg.setAttribute("aria-label", label);
  const legend = document.createElement("small");
  legend.setAttribute("aria-hidden", "true");
  const sizes = new Map(parts);
  let x = 0;
  for (const rect of svg.children) {
    const gib = sizes.get(rect.dataset.part);
    const width = ((gib || 0) / total) * 100;
    rect.setAttribute("x", x);
    rect.setAttribute("width", width);
    x += width;
    if (gib === undefined) continue;
    const key = document.createElement("span");
    key.className = `key ${rect.getAttribute("class")}`;
    legend.append(key, `${rect.dataset.part} ${gib.toFixed(1)} `);
  }
  place.append(svg, legend);
}

/** Make the children of a place as many as the items, by a key, in their order. */
function list(place, known, items, make) {
  const names = new Set(items.map(([name]) => name));
  for (const [name, node] of known) {
    if (!names.has(name)) {
      node.remove();
      known.delete(name);
    }
  }
  items.forEach(([name, item], index) => {
    if (!known.has(name)) known.set(name, make(item));
    const node = known.get(name);
    if (place.children[index] !== node) place.insertBefore(node, place.children[index] || null);
  });
}

function button(words, label, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = words;
  element.setAttribute("aria-label", label);
  element.addEventListener("click", () => act(element));
  return element;
}

function dialog(title, content) {
  text($("dialog-title"), title);
  text($("dialog-text"), content);
  if (!$("dialog").open) $("dialog").showModal();
}

/** The last question whose answer the dialog shows: a late answer to another is dropped. */
let question = 0;

async function log(host, service) {
  const [own, title] = [(question += 1), `Log of ${service} on ${host}`];
  dialog(title, "loading the log from the host …");
  const query = new URLSearchParams({ host, service });
  let content;
  try {
    content = await (await fetch(`/log?${query}`)).text();
  } catch (error) {
    content = `no answer: ${error.message}`;
  }
  if (own !== question) return;
  dialog(title, content);
  $("dialog-text").scrollTop = $("dialog-text").scrollHeight;
}

async function control(element, action, host, service) {
  const subject = service ? `${service} on ${host}` : host;
  if (!confirm(`${action[0].toUpperCase()}${action.slice(1)}: ${subject}?`)) return;
  element.disabled = true;
  question += 1;
  dialog(`${action}: ${subject}`, "running …");
  try {
    const answer = await fetch("/control", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ action, host, service }),
    });
    const words = await answer.text();
    const { done, text: said } = answer.ok ? JSON.parse(words) : { done: false, text: words };
    dialog(`${action}: ${subject}: ${done ? "done" : "failed"}`, said);
  } catch (error) {
    dialog(`${action}: ${subject}`, `no answer: ${error.message}`);
  }
  element.disabled = false;
}

/** A number as text; nothing for one that is not known. */
function figure(value, digits = 0, unit = "", scale = 1) {
  return typeof value === "number" ? `${(value * scale).toFixed(digits)}${unit}` : "";
}

function machine({ machine: own = {}, disks = {} }) {
  const gib = 1 / 2 ** 30;
  const free = ([path, [left, all]]) => `${figure(left, 0, "", 1e-9)} of ${figure(all, 0, " GB", 1e-9)} free on ${path}`;
  return {
    memory: typeof own.used !== "number" ? "" : `${figure(own.used, 0, "", gib)} of ${figure(own.total, 0, " GiB", gib)}`,
    temperature: figure(own.temperature, 0, " °C"),
    power: figure(own.power, 0, " W"),
    clock: figure(own.clock, 0, " MHz"),
    gpu: figure(own.gpu, 0, " %"),
    disk: Object.entries(disks).map(free).join(", "),
  };
}

function fetched({ name, runs, state, message, rate, bytes_done: done, bytes_total: total }) {
  if (state === "failed") return `${name}: failed: ${message}`;
  if (!runs) return `${name}: cut off: the next deploy goes on with it`;
  const share = total ? `${figure(done, 2, "", 1e-9)} of ${figure(total, 2, " GB", 1e-9)}` : "";
  return `${name}: ${state}: ${share} at ${figure(rate, 0, " MB/s", 1e-6)}`;
}

function ended(end) {
  const results = { good: "serving", reverted: "went back" };
  const words = [results[end.result] || end.result, `down for ${figure(end.down_seconds, 1, " s")}`, ...end.reasons];
  return `${clock(end.at)} ${end.service}: ${end.from_release || "nothing"} → ${end.to}: ${words.join(", ")}`;
}

function serviceNode(host, service) {
  const node = copy("service");
  const [logs, copies] = [node.querySelector("[data-log]"), node.querySelector("[data-copy]")];
  logs.setAttribute("aria-label", `Log of ${service.name} on ${host}`);
  logs.addEventListener("click", () => log(host, service.name));
  const label = `Copy the address of ${service.name} on ${host}`;
  copies.setAttribute("aria-label", label);
  copies.addEventListener("click", async () => {
    await navigator.clipboard.writeText(node.values.address.textContent);
    copies.setAttribute("aria-label", "Copied");
    text(copies, "Copied");
    setTimeout(() => {
      text(copies, "Copy");
      copies.setAttribute("aria-label", label);
    }, 2000);
  });
  for (const action of actions.filter((name) => !name.startsWith("maintenance"))) {
    const label = `${action} ${service.name} on ${host}`;
    const element = button(action, label, (e) => control(e, action, host, service.name));
    if (action === "activate") node.activate = element;
    logs.parentElement.append(" ", element);
  }
  return node;
}

function drawService(node, data) {
  const load = data.load || {};
  if (typeof load.first_token === "number") node.first = load.first_token; // else of earlier requests
  const figures = {
    tokens: figure(load.tokens, 1),
    hour: figure(data.hour, 1),
    running: figure(load.running),
    waiting: figure(load.waiting),
    first: figure(node.first, 2, " s"),
    cache: figure(load.cache, 0, " %", 100),
    plan: data.plan === "as planned" ? "" : data.plan,
  };
  if (data.up === "-") figures.up = "";
  for (const name of Object.keys(node.values)) show(node, name, name in figures ? figures[name] : data[name]);
  node.querySelector("[data-copy]").hidden = !data.address;
  if (node.activate) node.activate.hidden = !data.exclusive;
}

function hostNode(data) {
  const node = copy("host");
  node.setAttribute("aria-label", data.host);
  const buttons = node.querySelector("[data-buttons]");
  for (const action of actions.filter((name) => name.startsWith("maintenance"))) {
    buttons.append(button(action, `${action}: ${data.host}`, (e) => control(e, action, data.host, "")), " ");
  }
  return node;
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString();
}

/** The state of a host: off where it or the controller has been silent for too long. */
function drawState(entry) {
  const { node, data } = entry;
  const silent = data.state === "up" && (!connected || performance.now() - entry.came > SILENT * 1000);
  const off = data.state === "off" || silent;
  const seen = data.seen ? `last seen ${clock(data.seen)}` : "not seen yet";
  entry.off = off;
  attribute(node, "class", `host${off ? " off" : ""}${data.work ? " busy" : ""}`);
  show(node, "state", off ? `off, ${seen}` : data.state === "waiting" ? `being asked, ${seen} …` : "");
  for (const { name, well, health } of data.services) {
    const words = well ? "serves" : (health || "-").replace(/^-$/, "no answer yet");
    const place = entry.services.get(name).querySelector("[data-mark]");
    mark(place, well && !off, off ? "unknown: the host is off" : words);
  }
}

/** Requests and tokens of each key and model, where the host's address counts them. */
function drawUsage({ node, usage, data }) {
  const items = (data.usage || []).map((row) => [JSON.stringify([row.day, row.key, row.model]), row]);
  const place = node.querySelector("[data-usage]");
  place.hidden = !items.length;
  list(place.querySelector("dl"), usage, items, () => copy("usage"));
  for (const [name, row] of items) {
    const failed = row.failed ? `, ${row.failed} failed` : "";
    const tokens = (row.tokens_in + row.tokens_out).toLocaleString();
    show(usage.get(name), "key", `${row.key || "no key"}: ${row.model}`);
    show(usage.get(name), "text", `${row.requests.toLocaleString()} requests${failed}, ${tokens} tokens`);
  }
}

function draw(entry) {
  const { node, data } = entry;
  const figures = { ...machine(data), fetches: data.fetches.map(fetched).join("; ") };
  for (const name of Object.keys(node.values)) {
    if (name !== "state") show(node, name, name in figures ? figures[name] : data[name]);
  }
  bar(node.querySelector("[data-bar]"), data.bar);
  drawUsage(entry);
  const services = data.services.map((service) => [service.name, service]);
  list(node.querySelector("[data-services]"), entry.services, services, (item) => serviceNode(data.host, item));
  for (const [name, service] of services) drawService(entry.services.get(name), service);
  drawState(entry);
}

const findings = new Map();
const steps = new Map();

function drawFindings() {
  const items = [];
  const rollout = [];
  for (const { data, off } of hosts.values()) {
    if (off) items.push([`${data.host} off`, { text: `${data.host}: does not answer`, more: data.problem, heavy: true }]);
    for (const item of data.findings) {
      const where = [data.host, item.service].filter(Boolean).join(": ");
      const key = JSON.stringify([data.host, item.service, item.text]);
      items.push([key, { text: `${where}: ${item.text}`, more: item.more.join(". "), heavy: item.severity === "error" }]);
    }
    const downloads = data.fetches.filter(({ runs }) => runs).map(fetched);
    const work = [data.work, ...downloads].join("; ");
    if (data.work) rollout.push([`${data.host} now`, { host: data.host, text: work }]);
    for (const end of data.ended) rollout.push([JSON.stringify([data.host, end]), { host: data.host, text: ended(end) }]);
  }
  items.sort(([, a], [, b]) => b.heavy - a.heavy);
  list($("live-findings"), findings, items, () => copy("finding"));
  for (const [key, item] of items) for (const name of ["text", "more"]) show(findings.get(key), name, item[name]);
  list($("rollout"), steps, rollout, () => copy("rollout-host"));
  for (const [key, item] of rollout) for (const name of ["host", "text"]) show(steps.get(key), name, item[name]);
  $("rollout-section").hidden = !rollout.length;
  front($("live-findings").children.length);
}

function front(count) {
  const every = [...hosts.values()];
  const off = every.filter((entry) => entry.off).length;
  const waiting = every.filter((entry) => entry.data.state === "waiting").length;
  const serving = every.flatMap((entry) => (entry.off || entry.data.state === "waiting" ? [] : entry.data.services)).filter((item) => item.well).length;
  const services = every.reduce((sum, entry) => sum + entry.data.services.length, 0);
  const words = `${serving} of ${services} services serve on ${every.length - off - waiting} of ${every.length} hosts; ${count || "no"} finding${count === 1 ? "" : "s"}`;
  const well = connected && !off && !count && serving === services;
  document.title = `${connected && waiting ? "" : well ? "✓ " : "✗ "}${title}`;
  if (!connected) mark($("front"), false, "the connection to sparkwright is lost; what is shown is old");
  else if (waiting) text($("front"), `${words}; ${waiting} not asked yet`);
  else mark($("front"), well, words);
}

let pending = 0;
/** Findings of all hosts are drawn once, after the last event that came with others. */
function later() {
  pending = pending || requestAnimationFrame(() => {
    pending = 0;
    drawFindings();
  });
}

const events = new EventSource("/events");
events.onopen = () => { connected = true; };
events.onerror = () => {
  connected = false;
  for (const entry of hosts.values()) drawState(entry);
  later();
};
let record = null;
/** After a run, its findings and states are loaded, unless somebody is reading or typing here. */
events.addEventListener("beat", ({ data }) => {
  const busy = $("dialog").open || (document.hasFocus() && document.activeElement !== document.body);
  if (record !== null && record !== data && !busy) location.reload();
  record ??= data;
});
events.onmessage = (event) => {
  const data = JSON.parse(event.data);
  let entry = hosts.get(data.host);
  if (!entry) {
    entry = { node: hostNode(data), services: new Map(), usage: new Map() };
    hosts.set(data.host, entry);
    $("hosts").append(entry.node);
  }
  entry.data = data;
  entry.came = performance.now();
  draw(entry);
  later();
};
setInterval(() => {
  for (const entry of hosts.values()) drawState(entry);
  later();
}, 5000);
addEventListener("beforeprint", () => {
  text($("printed"), `Printed ${new Date().toLocaleString()}.`);
  for (const details of document.querySelectorAll("section > details")) details.open = true;
});
