// Publish and subscribe through a Topicweave node's WebSocket, from browsers and from Node.js 20 or newer.
//
//   import { topicweave } from "./client.js";
//   const node = topicweave("ws://127.0.0.1:8000/events", (event) => console.log(event.topic, event.text));
//   await node.subscribe("news", { last: 10 });
//   console.log(await node.publish("news", "hello"));
//
// A lost connection is opened again, for ever; topics are subscribed to again, with what came since the node's last word, and what had come already is
// left out. What was published and not answered is not published again: nobody knows whether it went out, and its promise is rejected.
//
// Node.js 20 has WebSocket behind `--experimental-websocket`; or give one, such as that of the package ws, as the option `WebSocket`.

const FIRST_PAUSE = 100, LONGEST_PAUSE = 10_000; // milliseconds between two attempts
const PING_EVERY = 10_000; // milliseconds; a node that says nothing for twice as long is taken for lost
const OVERLAP = 10; // seconds before the node's last word that are asked for again: events may have been on their way
const REMEMBERED = 65_536; // events that are recognised if they come again
const MOST_TOPICS = 10_000; // in one request

/**
 * @param {string | URL} url of the node's WebSocket; behind `?token=` the node's token, if it asks for one
 * @param {(event: {topic: string, publisher: string, epoch: number, sequence: number, text?: string, base64?: string, age?: number}) => void} onEvent
 * @param {{onGap?: Function, onIncomplete?: (lack: {pattern: string, prefix: string, reason: string}) => void, onState?: (state: {connected: boolean, why: string}) => void, WebSocket?: Function, pingEvery?: number}} options
 */
export function topicweave(url, onEvent, options = {}) {
  const { onGap = () => {}, onIncomplete = () => {}, onState = () => {}, WebSocket = globalThis.WebSocket, pingEvery = PING_EVERY } = options;
  if (!WebSocket) throw new Error("no WebSocket here: start Node.js 20 with --experimental-websocket, or give one as an option");
  const topics = new Set(), seen = new Set();
  const away = []; // requests that wait for a connection
  const waiting = []; // requests that wait for an answer, oldest first
  let socket = null, up = false, ended = null, pause = FIRST_PAUSE;
  let heard = 0, ahead = null; // the node's last word on our clock, and its clock less ours: seconds
  let pinging = null, coming = null;
  const now = () => performance.now() / 1000;

  const say = (request) => new Promise((resolve, reject) => {
    // The node answers in order: while it waits for others to accept an event, it says nothing.
    const patience = request.publish?.wait_for ? request.publish.timeout ?? 5 : 0;
    waiting.push({ resolve, reject, patience });
    socket.send(JSON.stringify(request));
  });
  const ask = (request) => {
    if (ended) return Promise.reject(ended);
    if (up) return say(request);
    return new Promise((resolve, reject) => away.push({ request, resolve, reject }));
  };
  // What may be said twice is said again if the connection is lost meanwhile.
  const tell = (request) => ask(request).catch((error) => {
    if (error.lost && !ended) return tell(request);
    throw error;
  });
  const portions = (list) => Array.from({ length: Math.ceil(list.length / MOST_TOPICS) },
    (_, part) => list.slice(part * MOST_TOPICS, (part + 1) * MOST_TOPICS));

  function take(message) {
    heard = now();
    if (message.event) takeEvent(message.event);
    else if (message.gap) onGap(message.gap);
    else if (message.incomplete) onIncomplete(message.incomplete);
    else {
      if (message.time) ahead = message.time - heard;
      const asked = waiting.shift();
      if (message.error) asked?.reject(new Error(message.error));
      else asked?.resolve(message);
    }
  }

  function takeEvent(event) {
    const key = JSON.stringify([event.topic, event.publisher, event.epoch, event.sequence]);
    if (seen.has(key)) return;
    seen.add(key);
    if (seen.size > REMEMBERED) seen.delete(seen.values().next().value);
    onEvent(event);
  }

  async function comeBack(opened) {
    const since = ahead === null ? undefined : heard + ahead - OVERLAP;
    let why = "";
    try {
      for (const some of portions([...topics])) await say({ subscribe: some, since });
    } catch (error) {
      if (error.lost) return;
      why = error.message;
    }
    if (opened !== socket) return;
    up = true;
    pause = FIRST_PAUSE;
    for (const { request, resolve, reject } of away.splice(0)) say(request).then(resolve, reject);
    onState({ connected: true, why });
  }

  function connect() {
    coming = null;
    const opened = new WebSocket(String(url));
    socket = opened;
    let wasOpen = false, gone = false;
    const lose = (why) => {
      if (gone) return;
      gone = true;
      clearInterval(pinging);
      up = false;
      socket = null;
      opened.close();
      const lost = Object.assign(
        new Error("the node went away before it answered: nobody knows whether it did what it was asked"), { lost: true });
      for (const { reject } of waiting.splice(0)) reject(lost);
      if (ended) return;
      if (wasOpen) onState({ connected: false, why });
      const again = () => { if (!ended) coming = setTimeout(connect, pause * (0.5 + Math.random() / 2)); };
      pause = Math.min(2 * pause, LONGEST_PAUSE);
      if (wasOpen) again();
      else refusal(url).then((reason) => reason ? end(new Error(reason), true) : again());
    };
    opened.onopen = () => {
      wasOpen = true;
      const since = now();
      pinging = setInterval(() => {
        const patience = waiting.reduce((sum, one) => sum + one.patience, 2 * pingEvery / 1000);
        if (now() - Math.max(since, heard) > patience) lose("the node does not answer");
        else say({}).catch(() => {});
      }, pingEvery);
      comeBack(opened);
    };
    opened.onmessage = ({ data }) => { if (!gone) take(JSON.parse(data)); };
    opened.onclose = ({ reason }) => lose(reason || "the connection ended");
    opened.onerror = () => lose("the connection failed");
  }

  function end(why, tellIt = false) {
    if (ended) return;
    ended = why;
    clearTimeout(coming);
    for (const { reject } of away.splice(0)) reject(why);
    socket?.close();
    if (tellIt) onState({ connected: false, why: why.message });
  }

  const list = (wanted) => (typeof wanted === "string" ? [wanted] : [...wanted]);
  connect();
  return {
    get connected() { return up; },
    get subscriptions() { return [...topics].sort(); },
    /** Topics or patterns such as `zone/+/door`, one or a list; first the `last` events of each, or those `since` a moment (Unix time). */
    async subscribe(wanted, { last, since } = {}) {
      for (const some of portions(list(wanted))) {
        await tell({ subscribe: some, last, since });
        some.forEach((topic) => topics.add(topic));
      }
    },
    async unsubscribe(wanted) {
      list(wanted).forEach((topic) => topics.delete(topic));
      for (const some of portions(list(wanted))) await tell({ unsubscribe: some });
    },
    /** A text or bytes; resolves to the receipt. Waits while there is no connection. */
    async publish(topic, payload, { waitFor, timeout, retain } = {}) {
      const body = typeof payload === "string" ? { text: payload } : { base64: toBase64(payload) };
      return (await ask({ publish: { topic, ...body, wait_for: waitFor, timeout, retain } })).receipt;
    },
    close() { end(new Error("the client is closed")); },
  };
}

/** The bytes of an event. */
export const payload = (event) => event.base64 === undefined
  ? new TextEncoder().encode(event.text ?? "")
  : Uint8Array.from(atob(event.base64), (letter) => letter.charCodeAt(0));

function toBase64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Why the node does not let us in, if it is there and says so; a WebSocket does not tell. */
async function refusal(url) {
  const asked = new URL(String(url).replace(/^ws/, "http"));
  asked.pathname = asked.pathname.replace(/events$/, "health");
  try {
    const answer = await fetch(asked);
    return answer.status === 401 || answer.status === 403 ? (await answer.json()).error : "";
  } catch {
    return "";
  }
}
