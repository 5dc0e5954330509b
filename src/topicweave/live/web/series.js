// Time series as small charts: a figure's last ten minutes, second by second. What is not known leaves a gap.

const percent = (value) => `${(100 * value).toFixed(1)} %`;
const plain = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2));
const milliseconds = (value) => `${plain(1000 * value)} ms`;
const CHARTS = [
  ["delivered", "events delivered per second", plain],
  ["published", "events published per second", plain],
  ["latency_p50", "latency, median", milliseconds],
  ["latency_p95", "latency, 95th percentile", milliseconds],
  ["hit_ratio", "hit ratio, five seconds after publishing", percent],
  ["duplicates", "further copies per delivery", plain],
  ["noise", "noise: first copies at nodes that do not want them", percent],
  ["relays", "nodes that relayed", plain],
  ["control_messages", "control messages per node and second", plain],
  ["control_bytes", "control bytes per node and second", plain],
  ["degree", "links per node", plain],
  ["nodes", "nodes up", plain],
  ["parts", "parts of the overlay", plain],
  ["topics_apart", "topics whose subscribers are not all linked", plain],
];
const KEPT = 600;

export class Series {
  constructor(place) {
    this.rows = [];
    this.charts = CHARTS.map(([name, title, words]) => {
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      const value = document.createElement("output");
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      caption.append(`${title}: `, value);
      figure.append(caption, canvas);
      figure.dataset.figure = name;
      place.append(figure);
      return { name, title, words, value, canvas };
    });
  }

  reset() { this.rows = []; }

  add(rows) {
    this.rows.push(...rows);
    if (this.rows.length > KEPT) this.rows.splice(0, this.rows.length - KEPT);
  }

  draw(colours) {
    for (const { name, title, words, value, canvas } of this.charts) {
      const values = this.rows.map((row) => row[name] ?? null);
      const last = values.at(-1) ?? null;
      value.textContent = last === null ? "not known" : words(last);
      canvas.setAttribute("aria-label", `${title}: ${value.textContent}`);
      const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const most = Math.max(...values.map((one) => one ?? 0), 1e-9);
      pen.strokeStyle = colours.line;
      pen.strokeRect(0.5, 0.5, width - 1, height - 1);
      pen.fillStyle = colours.faint;
      pen.font = "11px system-ui";
      pen.fillText(words(most === 1e-9 ? 0 : most), 4, 12);
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 1.5;
      pen.beginPath();
      let drawing = false;
      values.forEach((one, place) => {
        if (one === null) { drawing = false; return; }
        const x = width - 2 - (values.length - 1 - place) * (width - 4) / Math.max(60, values.length - 1);
        const y = height - 3 - one / most * (height - 18);
        if (drawing) pen.lineTo(x, y); else pen.moveTo(x, y);
        drawing = true;
      });
      pen.stroke();
    }
  }
}
