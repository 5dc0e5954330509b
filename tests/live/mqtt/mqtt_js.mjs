// mqtt.js at two doors: FOLDER VERSION PORT PORT. Prints what it hears.
import { createRequire } from "node:module";
const [folder, version, here, there] = process.argv.slice(2);
const mqtt = createRequire(folder + "/")("mqtt");
const connect = (port) => mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { protocolVersion: Number(version) });
const publisher = await connect(here);
const reader = await connect(there);
const heard = [];
let wake = () => {};
reader.on("message", (topic, payload, packet) => {
  // What was published a moment before the subscription may come as if it were new, too.
  if (`${payload}` === "kept" && !packet.retain) return;
  heard.push(`${payload} ${packet.retain}`);
  wake();
});
const next = async () => {
  while (!heard.length) await new Promise((done) => (wake = done));
  return heard.shift();
};
await publisher.publishAsync("t", "kept", { qos: 1, retain: true });
await reader.subscribeAsync("t", { qos: 2 });
console.log("retained", await next());
for (const qos of [0, 1, 2]) {
  await publisher.publishAsync("t", "live", { qos });
  console.log(qos, await next());
}
await reader.subscribeAsync(["a/+/c", "x/#"], { qos: 1 });
for (const topic of ["a/b/c", "x", "x/y/z"]) {
  await publisher.publishAsync(topic, topic, { qos: 1 });
  console.log(await next());
}
await publisher.endAsync();
await reader.endAsync();
