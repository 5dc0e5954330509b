// Where nodes stand: those that are linked draw each other near, all keep apart. One step at a time, ever calmer, so that pictures come to rest.

const COOLING = 0.985, WARM = 0.3, REST = 0.004;

export class Layout {
  constructor() {
    this.places = new Map(); // id -> {x, y}, about -1 to 1
    this.heat = 0;
  }

  /** Links or nodes have changed. */
  warm() { this.heat = Math.max(this.heat, WARM); }

  keep(ids) {
    for (const id of this.places.keys()) if (!ids.has(id)) this.places.delete(id);
    for (const id of ids) {
      if (this.places.has(id)) continue;
      // A place of its own that is the same on every page: drawn from its id.
      const angle = parseInt(id.slice(0, 8), 16) / 2 ** 32 * 2 * Math.PI;
      const far = 0.4 + 0.6 * (parseInt(id.slice(8, 12), 16) / 65536);
      this.places.set(id, { x: far * Math.cos(angle), y: far * Math.sin(angle) });
      this.heat = 1;
    }
  }

  /** One step; `links` are pairs of ids. Whether anything moved. */
  step(links) {
    if (this.heat < REST) return false;
    const places = [...this.places.values()], count = places.length;
    const x = Float64Array.from(places, (place) => place.x), y = Float64Array.from(places, (place) => place.y);
    const dx = new Float64Array(count), dy = new Float64Array(count);
    const near = 0.9 / Math.sqrt(Math.max(1, count)); // how far apart neighbours like to be
    for (let one = 0; one < count; one++) {
      for (let other = one + 1; other < count; other++) {
        const ax = x[one] - x[other], ay = y[one] - y[other];
        const push = near * near / (ax * ax + ay * ay + 1e-6);
        dx[one] += ax * push; dy[one] += ay * push;
        dx[other] -= ax * push; dy[other] -= ay * push;
      }
      dx[one] -= 0.6 * x[one]; dy[one] -= 0.6 * y[one];
    }
    const at = new Map([...this.places.keys()].map((id, place) => [id, place]));
    const degree = new Float64Array(count);
    for (const [from, to] of links) {
      const one = at.get(from), other = at.get(to);
      if (one !== undefined && other !== undefined) { degree[one]++; degree[other]++; }
    }
    for (const [from, to] of links) {
      const one = at.get(from), other = at.get(to);
      if (one === undefined || other === undefined) continue;
      const ax = x[one] - x[other], ay = y[one] - y[other];
      // A node with many links is not torn by them.
      const pull = 2 * (Math.hypot(ax, ay) - near) / Math.max(degree[one], degree[other]);
      dx[one] -= ax * pull; dy[one] -= ay * pull;
      dx[other] += ax * pull; dy[other] += ay * pull;
    }
    const most = 0.1 * this.heat;
    places.forEach((place, one) => {
      const far = Math.hypot(dx[one], dy[one]) || 1, go = Math.min(far * 0.2, most) / far;
      place.x += dx[one] * go;
      place.y += dy[one] * go;
    });
    this.heat *= COOLING;
    return true;
  }

  /** From places to pixels, so that all of them fit. */
  view(width, height, margin) {
    let [left, right, top, bottom] = [-0.1, 0.1, -0.1, 0.1];
    for (const { x, y } of this.places.values()) {
      left = Math.min(left, x); right = Math.max(right, x);
      top = Math.min(top, y); bottom = Math.max(bottom, y);
    }
    const across = (width - 2 * margin) / (right - left), down = (height - 2 * margin) / (bottom - top);
    return ({ x, y }) => [margin + (x - left) * across, margin + (y - top) * down];
  }
}
