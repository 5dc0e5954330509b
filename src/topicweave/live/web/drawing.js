// The overlay on a canvas: nodes, links by kind, topics as colours, and one event at a time on its way.

const HOP_TAKES = 0.45; // seconds on the screen; in truth about a millisecond
const GLOW = 0.8; // seconds for which a link in use is lit
const DASHES = [[], [5, 3], [2, 3], [8, 3, 2, 3], [1, 4]];
const MANY = 1500; // links
const MOST_EVENTS = 200; // remembered for one that is worth following
const MOST_HOPS = 2000; // of one event

export const hue = (topic) => {
  let number = 7;
  for (const letter of topic) number = (number * 31 + letter.codePointAt(0)) >>> 0;
  return Math.imul(number, 2654435761) >>> 0 >> 8 & 1023; // Names that differ a little get colours that differ a lot.
};
export const topicColour = (topic, dark) => `hsl(${hue(topic) * 360 / 1024} 70% ${dark ? 65 : 40}%)`;

/** One event after another, hop by hop, slowed down. */
export class Following {
  constructor() {
    this.events = new Map(); // event -> {topic, hops}
    this.current = null;
  }

  take(hops) {
    for (const [event, topic, from, to, hop, wanted, first] of hops) {
      let known = this.events.get(event);
      if (!known) {
        this.events.set(event, known = { event, topic, hops: [] });
        if (this.events.size > MOST_EVENTS) this.events.delete(this.events.keys().next().value);
      }
      if (known.hops.length < MOST_HOPS) known.hops.push({ from, to, hop, wanted, first });
    }
  }

  /** The event to show at a moment, and how far it has come: null if there is none. */
  at(now, wantedTopic) {
    if (this.current && now < this.current.until && (!wantedTopic || this.current.topic === wantedTopic)) return this.current;
    this.current = null;
    const fit = [...this.events.values()].filter((one) => !wantedTopic || one.topic === wantedTopic);
    if (!fit.length) return null;
    // The one that went furthest of those that came lately; the rest is past.
    const best = fit.slice(-30).reduce((most, one) => (one.hops.length > most.hops.length ? one : most));
    this.events.clear();
    const last = Math.max(...best.hops.map((one) => one.hop));
    this.current = { ...best, began: now, until: now + (last + 2) * HOP_TAKES };
    return this.current;
  }
}

export class Drawing {
  constructor(canvas, layout) {
    this.canvas = canvas;
    // Links and nodes, painted anew only when something has moved or changed: what happens meanwhile is drawn between them and above.
    this.still = [document.createElement("canvas"), document.createElement("canvas")];
    this.layout = layout;
    this.glowing = new Map(); // "from to" -> until when
    this.kinds = [];
    this.spots = new Map(); // id -> [x, y], as last drawn
  }

  glow(hops, now) {
    for (const [, topic, from, to] of hops) this.glowing.set(`${from} ${to}`, { until: now + GLOW, topic });
    for (const [key, { until }] of this.glowing) if (until < now) this.glowing.delete(key);
  }

  kindNumber(kind) {
    let number = this.kinds.indexOf(kind);
    if (number < 0) number = this.kinds.push(kind) - 1;
    return number;
  }

  /** The node at a point, or null. */
  under(x, y) {
    let best = null, near = 16;
    for (const [id, [atX, atY]] of this.spots) {
      const far = Math.hypot(x - atX, y - atY);
      if (far < near) [best, near] = [id, far];
    }
    return best;
  }

  draw(world, now, moved) {
    const { canvas, still } = this, ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      for (const layer of still) [layer.width, layer.height] = [canvas.width, canvas.height];
      moved = true;
    }
    const pen = canvas.getContext("2d");
    const size = Math.max(3, Math.min(9, 90 / Math.sqrt(world.nodes.size || 1)));
    const place = this.layout.view(width, height, size + 14);
    if (moved) {
      this.spots = new Map();
      for (const id of world.nodes.keys()) this.spots.set(id, place(this.layout.places.get(id)));
      const [under, above] = still.map((layer) => layer.getContext("2d"));
      for (const layer of [under, above]) {
        layer.setTransform(ratio, 0, 0, ratio, 0, 0);
        layer.clearRect(0, 0, width, height);
      }
      this.links(under, world);
      for (const [id, node] of world.nodes) this.node(above, world, node, this.spots.get(id), size);
    }
    if (!canvas.width || !canvas.height) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(still[0], 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (world.flash) this.glows(pen, world, now);
    const reached = world.event ? this.travel(pen, world, now, size) : new Map();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(still[1], 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (reached.size) this.reached(pen, world, reached, size);
  }

  links(pen, world) {
    const paths = new Map();
    for (const [from, to, kind] of world.links) {
      const a = this.spots.get(from), b = this.spots.get(to);
      if (!a || !b) continue;
      const bright = world.bright(from) && world.bright(to), key = `${bright} ${kind}`;
      let path = paths.get(key);
      if (!path) paths.set(key, path = { bright, kind, lines: new Path2D() });
      path.lines.moveTo(...a);
      path.lines.lineTo(...b);
    }
    for (const { bright, kind, lines } of paths.values()) {
      // Dashes are dear: while very many lines move, they are left out.
      pen.setLineDash(world.moving && world.links.length > MANY ? [] : DASHES[this.kindNumber(kind) % DASHES.length]);
      pen.strokeStyle = bright && world.topic ? topicColour(world.topic, world.dark) : world.colours.faint;
      pen.globalAlpha = bright ? (world.links.length > MANY ? 0.25 : 0.45) : 0.08;
      pen.lineWidth = 1;
      pen.stroke(lines);
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  glows(pen, world, now) {
    const paths = new Map(); // by topic and brightness, in few strokes
    for (const [key, { until, topic }] of this.glowing) {
      const [from, to] = key.split(" "), a = this.spots.get(from), b = this.spots.get(to);
      if (!a || !b || until < now) continue;
      const light = Math.ceil(4 * (until - now) / GLOW), name = `${topic} ${light}`;
      let path = paths.get(name);
      if (!path) paths.set(name, path = { topic, light, lines: new Path2D() });
      path.lines.moveTo(...a);
      path.lines.lineTo(...b);
    }
    pen.lineWidth = 2;
    for (const { topic, light, lines } of paths.values()) {
      pen.globalAlpha = 0.7 * light / 4;
      pen.strokeStyle = topicColour(world.topicName(topic), world.dark);
      pen.stroke(lines);
    }
    pen.globalAlpha = 1;
  }

  /** Dots on their way; returns who has the event by now, and whether they wanted it. */
  travel(pen, world, now, size) {
    const { event } = world, reached = new Map(), gone = (now - event.began) / HOP_TAKES;
    const lines = [new Path2D(), new Path2D()], dots = [new Path2D(), new Path2D()]; // of second copies, of first ones
    for (const { from, to, hop, wanted, first } of event.hops) {
      const a = this.spots.get(from), b = this.spots.get(to), share = Math.min(1, gone - (hop - 1));
      if (!a || !b || share <= 0) continue;
      if (hop === 1) reached.set(from, "publisher");
      const x = a[0] + (b[0] - a[0]) * share, y = a[1] + (b[1] - a[1]) * share;
      lines[Number(first)].moveTo(...a);
      lines[Number(first)].lineTo(x, y);
      if (share < 1 && !world.calm) {
        dots[Number(first)].moveTo(x + size * 0.6, y);
        dots[Number(first)].arc(x, y, size * 0.6, 0, 2 * Math.PI);
      } else if (share >= 1 && first) {
        reached.set(to, wanted ? "wanted" : "relay");
      }
    }
    pen.strokeStyle = pen.fillStyle = topicColour(world.topicName(event.topic), world.dark);
    pen.lineWidth = 2;
    pen.globalAlpha = 0.35;
    pen.stroke(lines[0]);
    pen.stroke(dots[0]);
    pen.globalAlpha = 0.9;
    pen.stroke(lines[1]);
    pen.fill(dots[1]);
    pen.globalAlpha = 1;
    return reached;
  }

  /** Around those who have the event: a ring, a wider one around its publisher, a square around a relay, which passed it on and does not want it. */
  reached(pen, world, reached, size) {
    const rings = new Path2D();
    for (const [id, how] of reached) {
      const [x, y] = this.spots.get(id), far = size + (how === "publisher" ? 6 : 4);
      if (how === "relay") rings.rect(x - far, y - far, 2 * far, 2 * far);
      else {
        rings.moveTo(x + far, y);
        rings.arc(x, y, far, 0, 2 * Math.PI);
      }
    }
    pen.strokeStyle = topicColour(world.topicName(world.event.topic), world.dark);
    pen.lineWidth = 2;
    pen.stroke(rings);
  }

  node(pen, world, node, [x, y], size) {
    const topics = node.topics ?? [], up = node.state === "up" || node.state === "seen";
    pen.globalAlpha = world.bright(node.id) ? 1 : 0.25;
    if (!up || !topics.length || size < 5 || world.topic) {
      const plain = node.state === "killed" ? world.colours.bad : up ? world.colours.faint : world.colours.held;
      pen.fillStyle = up && world.topic && topics.includes(world.topic) ? topicColour(world.topic, world.dark)
        : up && topics.length && !world.topic ? topicColour(topics[0], world.dark) : plain;
      pen.beginPath();
      if (node.state === "seen") pen.rect(x - size / 2, y - size / 2, size, size);
      else pen.arc(x, y, size, 0, 2 * Math.PI);
      pen.fill();
    } else { // Each topic a slice of its colour.
      topics.forEach((topic, slice) => {
        pen.fillStyle = topicColour(topic, world.dark);
        pen.beginPath();
        pen.moveTo(x, y);
        pen.arc(x, y, size, 2 * Math.PI * slice / topics.length, 2 * Math.PI * (slice + 1) / topics.length);
        pen.fill();
      });
    }
    if (node.state === "killed") {
      pen.strokeStyle = world.colours.back;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.moveTo(x - size / 2, y - size / 2); pen.lineTo(x + size / 2, y + size / 2);
      pen.moveTo(x + size / 2, y - size / 2); pen.lineTo(x - size / 2, y + size / 2);
      pen.stroke();
    }
    if (node.part) this.ring(pen, x, y, size + 2, world.colours.held, [3, 2]);
    if (world.chosen.has(node.id)) {
      this.ring(pen, x, y, size + 5, world.colours.accent, []);
      pen.fillStyle = world.colours.text;
      pen.font = "12px system-ui";
      pen.textAlign = "center";
      const half = pen.measureText(node.name).width / 2, wide = this.canvas.clientWidth;
      pen.fillText(node.name, Math.max(half, Math.min(wide - half, x)), y < 26 ? y + size + 18 : y - size - 8);
    }
    pen.globalAlpha = 1;
  }

  ring(pen, x, y, radius, colour, dash) {
    pen.setLineDash(dash);
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.stroke();
    pen.setLineDash([]);
  }
}
