// Uses the JavaScript client as an application does; reads orders from standard input and prints what comes, one line of JSON each.
import readline from "node:readline";
import { topicweave, payload } from "../../src/topicweave/live/web/client.js";

const say = (line) => console.log(JSON.stringify(line));
const node = topicweave(process.argv[2], (event) => say({ event: new TextDecoder("latin1").decode(payload(event)) }), {
  onGap: (gap) => say({ gap }),
  onIncomplete: (incomplete) => say({ incomplete }),
  onState: (state) => say({ state }),
  pingEvery: Number(process.argv[3]),
});
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [order, ...words] = JSON.parse(line);
  const bytes = order === "publishBytes" ? [words[0], Uint8Array.from(words[1])] : words;
  node[order === "publishBytes" ? "publish" : order](...bytes)
    .then((answer) => say({ [order]: answer ?? null }), (error) => say({ error: error.message }));
}
node.close();
