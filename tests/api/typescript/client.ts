// What a program in TypeScript does with the types that openapi-typescript makes of the document.
// It is compiled under --strict, and then run against a server: node client.js URL TOKEN
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[]; exitCode: number };

type Schemas = components["schemas"];

const [url, token] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({
  baseUrl: url,
  headers: { Authorization: `Bearer ${token}` },
});

function expect(what: string, found: unknown, wanted: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    console.error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
    process.exitCode = 1;
  }
}

function said(text: string): Schemas["UserMessage"] {
  return { type: "USER", contents: [{ type: "TEXT", text }] };
}

// What has a default is left out of a request, and is there in a response.
const policy: Schemas["MessageWindowPolicy"] = { kind: "message_window", max_messages: 2 };
const created = await client.POST("/api/v1/memories/", { body: { id: "from/typescript", policy } });
const memory = created.data!;
const stored = memory.policy as Schemas["StoredMessageWindowPolicy"];
const snaps: boolean = stored.snap_to_user;
expect("the policy", [stored.max_messages, snaps], [2, false]);

const path = { memory_id: memory.address };
const added = await client.POST("/api/v1/memories/{memory_id}/messages/", {
  params: { path, header: { "If-Match": '"0"' } },
  body: { messages: ["one", "two", "three"].map(said) },
});
expect("what left", added.data!.changes.map((change) => change.evicted_count), [0, 0, 1]);

const window = await client.GET("/api/v1/memories/{memory_id}/messages/", {
  params: { path, query: { as: "openai_chat" } },
});
expect("the window", window.data!.messages, [
  { role: "user", content: "two" },
  { role: "user", content: "three" },
]);
const etag = window.response.headers.get("ETag")!;
const again = await client.GET("/api/v1/memories/{memory_id}/messages/", {
  params: { path, header: { "If-None-Match": etag }, query: { as: "openai_chat" } },
});
expect("the window again", again.response.status, 304);

const conflict = await client.DELETE("/api/v1/memories/{memory_id}/messages/", {
  params: { path, header: { "If-Match": '"1"' } },
});
expect("the conflict", [conflict.error?.status, conflict.error?.current?.version], [412, 3]);

// @ts-expect-error There is no such member.
const misspelt: Schemas["CreateMemoryRequest"] = { id: "a", label: {} };
const refused = await client.POST("/api/v1/memories/", { body: misspelt });
expect("the typo", [refused.error?.status, refused.error?.field], [400, "label"]);

const deleted = await client.DELETE("/api/v1/memories/{memory_id}/", { params: { path } });
expect("the deletion", deleted.response.status, 204);
