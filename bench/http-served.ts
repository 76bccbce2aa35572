/**
 * The servers of `bench/http.ts`, `bench/wire.ts` and `bench/soak.ts`, each in a process of its own: Drover on a real
 * disk, and a bare `node:http` server that parses a JSON body and sends JSON back. The parent hears the port and, when
 * it asks, the CPU time that was used.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CONFIG = {
  scheduler: {
    ...{ maxInFlight: 100_000, maxPerAgentInFlight: 100_000, maxQueue: 2_000_000, maxPerAgent: 2_000_000 },
    ...{ maxBatch: 1000, perType: { plan: null, spec: null, phase: null, code: null } },
  },
  // One project does it all here, and stores more than one should in a minute.
  projects: { default: { maxConcurrent: 100_000, bytesPerMinute: null } },
};

/** As the peers of `bench/wire.ts` are set: what is done is let go, but for those who still ask. */
const WIRE = { ...CONFIG, scheduler: { ...CONFIG.scheduler, resultMax: 1000, remember: "1s" } };

/** Results and tombstones go after seconds, so that a soak reaches its level early. */
const SOAK = {
  ...CONFIG,
  scheduler: { ...CONFIG.scheduler, resultTtl: "5s", remember: "10s" },
  gates: { default: { requests: 100_000 } },
  log: { snapshotEvery: 200_000, retain: "60s" },
};

/** As long as Drover's: its connections are idle while the other server is asked. */
const ECHO_OPTIONS = { keepAliveTimeout: 65_000 };

const say = (message: object): void => void process.send?.(message);

async function serveEcho(): Promise<() => Promise<void>> {
  const server = createServer(ECHO_OPTIONS, (request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = JSON.stringify(JSON.parse(Buffer.concat(parts).toString()));
      response.writeHead(202, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  say({ port: (server.address() as AddressInfo).port });
  return async () => void server.close();
}

async function serveDrover(config: object): Promise<() => Promise<void>> {
  const { openDrover } = await import("../src/engine/index.ts");
  const { startServer } = await import("../src/server/index.ts");
  const { readSettings } = await import("../src/protocol/settings/settings.ts");
  const { collectYoung } = await import("../src/std/index.ts");
  // As `drover serve` does.
  collectYoung();
  const data = mkdtempSync(join(tmpdir(), "drover-bench-http-"));
  const settings = readSettings({ ...config, server: { port: 0, shutdownGrace: "1s" } });
  if (!settings.ok) throw new Error(JSON.stringify(settings.failure));
  const drover = await openDrover({ data, config });
  const server = await startServer({ drover, settings: settings.value });
  say({ port: server.port });
  return async () => {
    await server.close();
    rmSync(data, { recursive: true, force: true });
  };
}

const [, , kind] = process.argv;
const CONFIGS: Readonly<Record<string, object>> = { drover: CONFIG, wire: WIRE, soak: SOAK };
const close = kind === "echo" ? await serveEcho() : await serveDrover(CONFIGS[kind ?? ""] ?? CONFIG);
process.on("message", async (message: { readonly type: string }) => {
  if (message.type === "usage") {
    const [all, main] = [process.cpuUsage(), process.threadCpuUsage()];
    const [cpuMs, mainMs] = [(all.user + all.system) / 1000, (main.user + main.system) / 1000];
    say({ cpuMs, mainMs, rss: process.memoryUsage().rss });
  }
  if (message.type === "collect") {
    globalThis.gc?.();
    say(process.memoryUsage());
  }
  if (message.type !== "stop") return;
  await close();
  process.exit(0);
});
// The process that started it is gone.
process.on("disconnect", () => process.exit(1));
