// A server of the npm package `fastmcp` on stdio.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.MCP_ECOSYSTEM_NODE}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { FastMCP } = await load("fastmcp");
const { z } = await load("zod");

const server = new FastMCP({ name: "npm fastmcp", version: "1.0.0" });
server.addTool({
  name: "echo",
  description: "Returns the text",
  parameters: z.object({ text: z.string() }),
  execute: async ({ text }) => text,
});
server.addPrompt({ name: "greet", description: "Greets", load: async () => "Good day" });
server.addPrompt({
  name: "introduce",
  description: "Introduces somebody",
  arguments: [{ name: "name", description: "The name", required: true }],
  load: async ({ name }) => `I am ${name}`,
});
await server.start({ transportType: "stdio" });
