"""The page at `/`: publish and subscribe from a browser. Its script is the JavaScript example of docs/live.md."""

CLIENT = """\
// Publish and subscribe over a Topicweave node's WebSocket. Works in browsers and in Node.js (22 or newer).
export function topicweave(url, onEvent, onGap = () => {}) {
  const socket = new WebSocket(url);
  const waiting = [];
  const ready = new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("cannot reach " + url));
  });
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.event) onEvent(message.event);
    else if (message.gap) onGap(message.gap);
    else waiting.shift()?.(message);
  };
  const ask = (request) => ready.then(() => new Promise((resolve) => {
    waiting.push(resolve);
    socket.send(JSON.stringify(request));
  }));
  return {
    subscribe: (...topics) => ask({ subscribe: topics }),
    unsubscribe: (...topics) => ask({ unsubscribe: topics }),
    publish: (topic, text) => ask({ publish: { topic, text } }),
    close: () => socket.close(),
  };
}
"""

PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Topicweave node</title>
<style>body { font: 16px system-ui; max-width: 40em; margin: 2em auto; } input { font: inherit; }</style>
<h1>Topicweave node</h1>
<form id="publish"><input id="topic" value="news" aria-label="topic" required>
<input id="text" placeholder="say something" aria-label="text"><button>publish</button></form>
<form id="subscribe"><input id="wanted" value="news" aria-label="topic" required><button>subscribe</button></form>
<p id="receipt"></p>
<ol id="events"></ol>
<script type="module">
import { topicweave } from "./client.js";
const url = new URL("events" + location.search, location.href.replace(/^http/, "ws"));
const line = (event) => `${event.topic} · ${event.publisher}: ${event.text ?? event.base64}`;
const node = topicweave(url, (event) => {
  const item = document.createElement("li");
  item.textContent = line(event);
  document.querySelector("#events").append(item);
});
document.querySelector("#subscribe").onsubmit = (submit) => {
  submit.preventDefault();
  node.subscribe(document.querySelector("#wanted").value);
};
document.querySelector("#publish").onsubmit = async (submit) => {
  submit.preventDefault();
  const topic = document.querySelector("#topic").value;
  const { receipt, error } = await node.publish(topic, document.querySelector("#text").value);
  document.querySelector("#receipt").textContent =
    error ?? `taken by ${receipt.neighbours} neighbours ${receipt.reason}`;
};
</script>
"""
