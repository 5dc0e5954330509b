// The page at `/`: publish and subscribe from a browser.
import { topicweave } from "./client.js";

const MOST_SHOWN = 1000;
const at = (name) => document.querySelector(name);
const url = new URL("events" + location.search, location.href.replace(/^http/, "ws"));
at("#dashboard").search = location.search;
const line = (event) => `${event.topic} · ${event.publisher}: ${event.text ?? event.base64}`;
const node = topicweave(url, (event) => {
  const item = document.createElement("li");
  item.textContent = line(event);
  at("#events").append(item);
  if (at("#events").childElementCount > MOST_SHOWN) at("#events").firstChild.remove();
}, { onState: ({ connected, why }) => { at("#state").textContent = connected ? "connected" : `not connected: ${why}`; } });
const tell = (error) => { at("#receipt").textContent = error.message; };
at("#subscribe").onsubmit = (submit) => {
  submit.preventDefault();
  node.subscribe(at("#wanted").value).catch(tell);
};
at("#publish").onsubmit = (submit) => {
  submit.preventDefault();
  node.publish(at("#topic").value, at("#text").value).then((receipt) => {
    at("#receipt").textContent = `taken by ${receipt.neighbours} neighbours ${receipt.reason}`;
  }).catch(tell);
};
