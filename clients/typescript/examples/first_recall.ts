// Stores two memories and recalls the relevant one. The server is at $ASTROCYTE_ADDRESS, by default localhost:50051.
import { connect } from "../src/index.js";

const client = connect(process.env.ASTROCYTE_ADDRESS ?? "localhost:50051");
for (const content of ["Mara is allergic to sesame, not to nuts.", "Mara plays the cello."]) {
  await client.retain({ bankId: "family-typescript", content });
}
const found = await client.recall({ bankId: "family-typescript", query: "what is Mara allergic to?" });
for (const hit of found.hits) {
  console.log(`${hit.score.toFixed(2)}  ${hit.text}`);
}
client.close();
