/**
 * A provider's stop that a command reports behind `drover serve` shuts the gate of its task's provider.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emptyDirectory, type Served, served } from "../../../test/kits/cli/served.ts";
import { createClient } from "../../client/index.ts";

/** Resolves when the log has an event of that kind. */
async function until({ url }: Served, kind: string): Promise<void> {
  for await (const event of createClient({ url }).events({ after: 0 })) if (event.kind === kind) return;
}

const COMMANDS: readonly (readonly [name: string, script: string])[] = [
  ["exit code 75 with a provider's message on stderr", "echo 'HTTP 429 Too Many Requests' >&2; exit 75"],
  ["exit code 75 with a provider's message in its result", `echo '{"error": {"type": "overloaded_error"}}'; exit 75`],
];
for (const [name, script] of COMMANDS)
  test(`${name} shuts the gate`, async () => {
    const directory = emptyDirectory();
    writeFileSync(join(directory, "agent.sh"), `#!/bin/sh\ncat > /dev/null\n${script}\n`, { mode: 0o755 });
    await using server = await served(["--exec", "./agent.sh"], { directory });
    await server.drover(["submit", "ask", "--id", "t", "--provider", "acme/default"]);
    await until(server, "attempt-lost");
    const { gates } = await createClient({ url: server.url }).gates();
    assert.deepEqual(
      gates.map(({ id, throttles }) => [id, throttles]),
      [["acme/default", 1]],
    );
  });
