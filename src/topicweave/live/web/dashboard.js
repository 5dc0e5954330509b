// The dashboard: keeps what the node or the swarm tells, and lets people look at it.
import { Drawing, Following, topicColour } from "./drawing.js";
import { Layout } from "./layout.js";
import { Series } from "./series.js";

const MOST_LINES = 500, MOST_FOUND = 24, FRAME_EVERY = 1000 / 15, LONGEST_PAUSE = 10_000;
const at = (name) => document.querySelector(name);
const make = (kind, text = "", more = {}) => Object.assign(document.createElement(kind), { textContent: text, ...more });

const layout = new Layout(), series = new Series(at("#charts")), following = new Following();
const drawing = new Drawing(at("#canvas"), layout);
const darkness = matchMedia("(prefers-color-scheme: dark)"), calmness = matchMedia("(prefers-reduced-motion: reduce)");
const nodes = new Map(), topics = new Map(), chosen = new Set();
let links = [], topic = "", socket = null, pause = 250, colours = {}, lines = [], moved = true;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "text", "faint", "line", "accent", "good", "bad", "held"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
  moved = true;
  series.draw(colours);
}

// What comes.

function take(frame) {
  if (frame.whole) {
    nodes.clear();
    topics.clear();
    series.reset();
    lines = [];
    at("#log").replaceChildren();
    at("#title").textContent = frame.title || "Topicweave";
    showOrders(frame.orders ?? []);
  }
  for (const [key, name] of Object.entries(frame.topics ?? {})) topics.set(key, name);
  if (frame.whole || frame.nodes?.length) takeNodes(frame.nodes ?? [], frame.whole);
  const now = performance.now() / 1000;
  if (frame.hops?.length) {
    drawing.glow(frame.hops, now);
    following.take(frame.hops);
  }
  if (frame.figures?.length) {
    series.add(frame.figures);
    series.draw(colours);
  } else if (frame.whole) series.draw(colours);
  if (frame.log?.length) takeLines(frame.log);
  if (frame.answer) at("#answer").textContent = frame.answer;
}

function takeNodes(changed, whole) {
  for (const node of changed) nodes.set(node.id, node);
  links = [];
  const linked = new Set(), told = new Set();
  for (const node of nodes.values()) {
    for (const [peer, kind] of node.links ?? []) {
      linked.add(peer);
      const key = node.id < peer ? `${node.id} ${peer} ${kind}` : `${peer} ${node.id} ${kind}`;
      if (!told.has(key)) {
        told.add(key);
        links.push([node.id, peer, kind]);
      }
    }
  }
  for (const [id, node] of nodes) if (node.state === "seen" && !linked.has(id)) nodes.delete(id);
  // A recording that begins anew has no nodes at first: what was chosen is there again with the next frame.
  if (!whole) for (const id of chosen) if (!nodes.has(id)) chosen.delete(id);
  layout.keep(new Set(nodes.keys()));
  layout.warm();
  moved = true;
  showLegend();
  showChosen();
}

function takeLines(more) {
  lines.push(...more);
  lines.splice(0, lines.length - MOST_LINES);
  const wanted = at("#kind").value, list = at("#log");
  for (const line of more) if (!wanted || line[1] === wanted) list.prepend(lineItem(line));
  while (list.childElementCount > MOST_LINES) list.lastChild.remove();
}

function lineItem([time, kind, text]) {
  const item = make("li", "", { className: kind });
  item.append(make("time", new Date(1000 * time).toLocaleTimeString()), text);
  return item;
}

// What is shown.

function showLegend() {
  const counts = new Map();
  for (const [, , kind] of links) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const legend = [...counts].sort().map(([kind, count]) => {
    const dashes = ["———", "– – –", "· · ·", "– · –", "·  ·"][drawing.kindNumber(kind) % 5];
    return make("span", `${dashes} ${kind} (${count})`);
  });
  at("#legend").replaceChildren(make("span", `${nodes.size} nodes`), ...legend);
  at("#canvas").setAttribute("aria-label", `${nodes.size} nodes and ${links.length} links`);
}

function showChosen() {
  const about = at("#about"), here = [...chosen].map((id) => nodes.get(id)).filter(Boolean);
  if (topic) {
    const wanting = [...nodes.values()].filter((node) => node.topics?.includes(topic));
    const apart = partsOf(new Set(wanting.filter((node) => node.state === "up").map((node) => node.id)));
    about.replaceChildren(facts({ topic, subscribers: wanting.length, parts: apart.length,
      ...Object.fromEntries(apart.map((part, number) => [apart.length > 1 ? `part ${number + 1}` : "who they are",
        part.map((id) => nodes.get(id).name).sort().join(", ")])) }));
  } else if (here.length === 1) {
    const node = here[0], kinds = {};
    for (const [peer, kind] of node.links ?? []) (kinds[`${kind} links`] ??= []).push(nodes.get(peer)?.name ?? peer);
    for (const kind of Object.keys(kinds)) kinds[kind] = `${kinds[kind].length}: ${kinds[kind].sort().join(", ")}`;
    const own = facts({ node: node.name, state: node.state, side: node.part ? "behind the firewall" : "", ...kinds });
    about.replaceChildren(own, make("p", `${node.topics?.length ?? 0} topics:`), topicButtons(node.topics ?? []));
  } else if (here.length) {
    about.replaceChildren(make("p", `${here.length} nodes: ${here.map((node) => node.name).sort().join(", ")}`));
  } else about.replaceChildren(make("p", "nothing"));
}

/** Those nodes, in parts that are linked among themselves; the largest first. */
function partsOf(members) {
  const peers = new Map([...members].map((id) => [id, []]));
  for (const [from, to] of links) {
    if (peers.has(from) && peers.has(to)) {
      peers.get(from).push(to);
      peers.get(to).push(from);
    }
  }
  const parts = [], seen = new Set();
  for (const id of members) {
    if (seen.has(id)) continue;
    seen.add(id);
    const part = [id];
    for (const one of part) for (const peer of peers.get(one)) if (!seen.has(peer)) { seen.add(peer); part.push(peer); }
    parts.push(part);
  }
  return parts.sort((a, b) => b.length - a.length);
}

function facts(values) {
  const list = document.createElement("dl");
  for (const [name, value] of Object.entries(values)) if (value !== "") list.append(make("dt", name), make("dd", value));
  return list;
}

function topicButtons(names) {
  const list = make("div");
  for (const name of names.slice(0, 40)) {
    const button = make("button", name, { type: "button", className: "topic", onclick: () => chooseTopic(name) });
    button.style.setProperty("--topic", topicColour(name, darkness.matches));
    list.append(button, " ");
  }
  return list;
}

function showOrders(orders) {
  const words = {
    kill: ["Kill", "kill -9"], stop: ["Stop", "SIGSTOP: the process stands still"],
    restart: ["Restart", "starts what was killed, lets go on what was stopped"],
    partition: ["Partition", "a firewall between the chosen nodes, or half of all, and the rest"], heal: ["Heal", "takes the firewall away"],
  };
  const buttons = orders.map((order) => make("button", words[order][0], { type: "button", title: words[order][1], name: order,
    onclick: () => socket?.send(JSON.stringify({ order, nodes: [...chosen] })) }));
  if (orders.length) buttons.unshift(make("button", "Choose a third", { type: "button", name: "third", onclick: chooseThird }));
  at("#orders").replaceChildren(...buttons);
  at("#orders").hidden = !orders.length;
}

// What is chosen.

function choose(id, more = false) {
  topic = "";
  if (!more) chosen.clear();
  if (id !== null) if (more && chosen.has(id)) chosen.delete(id); else chosen.add(id);
  moved = true;
  showChosen();
}

function chooseTopic(name) {
  choose(null);
  topic = name;
  showChosen();
}

function chooseThird() {
  const up = [...nodes.values()].filter((node) => node.state === "up").map((node) => node.id);
  choose(null);
  for (let left = Math.max(1, Math.floor(up.length / 3)); left > 0 && up.length; left--) {
    chosen.add(up.splice(Math.floor(Math.random() * up.length), 1)[0]);
  }
  showChosen();
}

function find() {
  const sought = at("#find").value.trim().toLowerCase(), found = [];
  if (sought) {
    for (const node of nodes.values()) {
      if (found.length < MOST_FOUND && (node.name.toLowerCase().includes(sought) || node.id.startsWith(sought))) {
        found.push(make("button", node.name, { type: "button", onclick: () => choose(node.id) }));
      }
    }
    for (const name of topics.values()) {
      if (found.length < MOST_FOUND && name.toLowerCase().includes(sought)) found.push(topicButtons([name]).firstChild);
    }
    if (!found.length) found.push(make("span", "nothing has that name"));
  }
  at("#found").replaceChildren(...found.map((one) => { const item = make("li"); item.append(one); return item; }));
}

at("#find").oninput = find;
at("#search").onsubmit = (submit) => {
  submit.preventDefault();
  at("#found button")?.click();
};
at("#kind").onchange = () => {
  const wanted = at("#kind").value;
  at("#log").replaceChildren(...lines.filter((line) => !wanted || line[1] === wanted).map(lineItem).reverse());
};
at("#canvas").onclick = (click) => choose(drawing.under(click.offsetX, click.offsetY), click.shiftKey);
at("#canvas").onkeydown = (key) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key.key];
  if (key.key === "Escape") choose(null);
  else if (step) {
    const order = [...nodes.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map((node) => node.id);
    const last = order.indexOf([...chosen].at(-1));
    choose(order[(last + (last < 0 && step < 0 ? 0 : step) + order.length) % order.length] ?? null, key.shiftKey);
  } else return;
  key.preventDefault();
};
darkness.onchange = readColours;
addEventListener("resize", () => { moved = true; series.draw(colours); });

// Frames on the screen.

const world = {
  nodes, chosen, colours,
  get links() { return links; },
  get topic() { return topic; },
  get dark() { return darkness.matches; },
  get calm() { return calmness.matches; },
  get flash() { return at("#flash").checked; },
  topicName: (key) => topics.get(key) ?? key,
  bright: (id) => !topic || Boolean(nodes.get(id)?.topics?.includes(topic)),
  event: null,
  moving: false,
};
let drawn = 0, frames = 0, counted = 0;

function paint(time) {
  requestAnimationFrame(paint);
  if (time - drawn < FRAME_EVERY - 2) return;
  drawn = time;
  const now = time / 1000;
  const moving = !at("#still").checked && layout.step(links);
  if (moving !== world.moving) moved = true; // Once more when all stand still, with everything.
  world.moving = moving;
  const wantedTopic = topic && [...topics].find(([, name]) => name === topic)?.[0];
  world.event = at("#follow").checked ? following.at(now, wantedTopic) : null;
  if (moved || moving || world.event || drawing.glowing.size) drawing.draw(world, now, moved || moving);
  moved = false;
  const event = world.event;
  const text = event ? `following an event on ${world.topicName(event.topic)}: ${event.hops.length} receptions, up to ${Math.max(...event.hops.map((one) => one.hop))} hops` : "";
  if (at("#following").textContent !== text) at("#following").textContent = text;
  frames++;
  if (time - counted >= 1000) {
    document.documentElement.dataset.framesPerSecond = Math.round(1000 * frames / (time - counted));
    [frames, counted] = [0, time];
  }
}

// The connection.

function connect() {
  const url = new URL("watch", location.href.replace(/^http/, "ws"));
  url.search = location.search;
  socket = new WebSocket(url);
  socket.onopen = () => {
    pause = 250;
    at("#state").textContent = "connected";
  };
  socket.onmessage = ({ data }) => take(JSON.parse(data));
  socket.onclose = () => {
    socket = null;
    at("#state").textContent = "not connected; trying again";
    setTimeout(connect, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  };
}

readColours();
showChosen();
connect();
requestAnimationFrame(paint);
