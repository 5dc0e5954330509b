// The overlay on a canvas: nodes, links by kind, topics as colours, and one event at a time on its way.

const HOP_TAKES = 0.45; // seconds on the screen; in truth about a millisecond
const GLOW = 0.8; // seconds for which a link in use is lit
const DASHES = [[], [5, 3], [2, 3], [8, 3, 2, 3], [1, 4]];
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

  draw(world, now) {
    const { canvas } = this, ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const size = Math.max(3, Math.min(9, 90 / Math.sqrt(world.nodes.size || 1)));
    const place = this.layout.view(width, height, size + 14);
    this.spots = new Map();
    for (const id of world.nodes.keys()) this.spots.set(id, place(this.layout.places.get(id)));
    this.links(pen, world);
    if (world.flash) this.glows(pen, world, now);
    const reached = world.event ? this.travel(pen, world, now, size) : new Map();
    for (const [id, node] of world.nodes) this.node(pen, world, node, this.spots.get(id), size, reached.get(id));
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
      pen.setLineDash(DASHES[this.kindNumber(kind) % DASHES.length]);
      pen.strokeStyle = bright && world.topic ? topicColour(world.topic, world.dark) : world.colours.faint;
      pen.globalAlpha = bright ? (world.links.length > 1500 ? 0.25 : 0.45) : 0.08;
      pen.lineWidth = 1;
      pen.stroke(lines);
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  glows(pen, world, now) {
    pen.lineWidth = 2;
    for (const [key, { until, topic }] of this.glowing) {
      const [from, to] = key.split(" "), a = this.spots.get(from), b = this.spots.get(to);
      if (!a || !b || until < now) continue;
      pen.globalAlpha = 0.7 * (until - now) / GLOW;
      pen.strokeStyle = topicColour(world.topicName(topic), world.dark);
      pen.beginPath();
      pen.moveTo(...a);
      pen.lineTo(...b);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  /** Dots on their way; returns who has the event by now, and whether they wanted it. */
  travel(pen, world, now, size) {
    const { event } = world, reached = new Map(), colour = topicColour(world.topicName(event.topic), world.dark);
    const gone = (now - event.began) / HOP_TAKES;
    for (const { from, to, hop, wanted, first } of event.hops) {
      const a = this.spots.get(from), b = this.spots.get(to), share = Math.min(1, gone - (hop - 1));
      if (!a || !b || share <= 0) continue;
      if (hop === 1) reached.set(from, "publisher");
      pen.globalAlpha = first ? 0.9 : 0.35;
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = 2;
      const x = a[0] + (b[0] - a[0]) * share, y = a[1] + (b[1] - a[1]) * share;
      pen.beginPath();
      pen.moveTo(...a);
      pen.lineTo(x, y);
      pen.stroke();
      if (share < 1 && !world.calm) {
        pen.beginPath();
        pen.arc(x, y, size * 0.6, 0, 2 * Math.PI);
        if (first) pen.fill(); else pen.stroke();
      } else if (share >= 1 && first) {
        reached.set(to, wanted ? "wanted" : "relay");
      }
    }
    pen.globalAlpha = 1;
    return reached;
  }

  node(pen, world, node, [x, y], size, reached) {
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
    if (reached) {
      const colour = topicColour(world.topicName(world.event.topic), world.dark);
      if (reached === "relay") { // Passed on by a node that does not want it: a square.
        pen.strokeStyle = colour;
        pen.lineWidth = 2;
        pen.strokeRect(x - size - 3, y - size - 3, 2 * size + 6, 2 * size + 6);
      } else this.ring(pen, x, y, size + (reached === "publisher" ? 6 : 4), colour, []);
    }
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
