// Calls of Vercel's AI SDK through the recorder: node ai_sdk.mjs URL PROVIDER
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, streamText, tool } from "ai";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [site, provider] = process.argv.slice(2);
const apiKey = "sk-of-the-ai-sdk-0123456789abcdef";
const openai = createOpenAI({ baseURL: `${site}/v1`, apiKey });
const anthropic = createAnthropic({ baseURL: `${site}/v1`, apiKey });
const google = createGoogleGenerativeAI({ baseURL: `${site}/v1beta`, apiKey });
const model = {
  chat: () => openai.chat("gpt-4o"),
  responses: () => openai.responses("gpt-4o"),
  anthropic: () => anthropic("claude-test"),
  google: () => google("gemini-2.5-flash"),
}[provider]();

const schema = { type: "object", properties: { bicycle: { type: "integer" } }, required: ["bicycle"] };
const tools = { find: tool({ description: "Find a part.", inputSchema: jsonSchema(schema) }) };
const call = { model, tools, system: "You help at a workshop.", prompt: "What does bicycle 41 need?" };
const asked = await generateText({ ...call, headers: { "X-Chatmemory-Conversation": "whole" } });
const streamed = streamText({ ...call, headers: { "X-Chatmemory-Conversation": "streamed" } });
let text = "";
for await (const piece of streamed.textStream) text += piece;
console.log(JSON.stringify([asked.text, text]));
