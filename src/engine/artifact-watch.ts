/**
 * Whether input artifacts are there.
 *
 * The core never looks at a disk: that an artifact appeared is an event like any other. This watcher looks
 * at the artifacts some task waits for, every `workers.artifactPoll`, and tells the writer of those that
 * are there. An artifact is a path unless the host says otherwise. While some task waits for one, the alarm keeps
 * the program alive: it is set anew when the first is awaited.
 */
import { access } from "node:fs/promises";
import type { Host } from "./host.ts";
import type { Writer } from "./writer.ts";

const LOOKED_AT_ONCE_MAX = 64;

export type ArtifactExists = (artifact: string) => Promise<boolean>;
export type ArtifactWatch = {
  look(): Promise<void>;
  /** Something happened: from now on an artifact may be awaited. */
  onApplied(): void;
  stop(): void;
};

export const fileExists: ArtifactExists = async (artifact) => {
  try {
    await access(artifact);
    return true;
  } catch {
    return false;
  }
};

export function watchArtifacts(deps: {
  readonly writer: Writer;
  readonly host: Host;
  readonly exists: ArtifactExists;
}): ArtifactWatch {
  const { writer, host, exists } = deps;
  let cancel: (() => void) | null = null;
  let keepAlive = false;
  let stopped = false;

  async function look(): Promise<void> {
    const wanted = [...writer.state.artifacts.keys()];
    for (let start = 0; start < wanted.length && !stopped; start += LOOKED_AT_ONCE_MAX) {
      const slice = wanted.slice(start, start + LOOKED_AT_ONCE_MAX);
      const found = await Promise.all(slice.map(exists));
      for (const [index, artifact] of slice.entries()) {
        if (found[index] === true && !stopped) writer.execute({ type: "artifact-ready", artifact });
      }
    }
  }

  function again(): void {
    if (stopped) return;
    cancel?.();
    const at = host.now() + writer.state.config.workers.artifactPoll;
    keepAlive = writer.state.artifacts.size > 0;
    cancel = host.setAlarm(
      at,
      () =>
        void look()
          .catch(() => {})
          .then(again),
      { keepAlive },
    );
  }

  again();
  return {
    look,
    onApplied() {
      if (!keepAlive && writer.state.artifacts.size > 0) again();
    },
    stop() {
      stopped = true;
      cancel?.();
    },
  };
}
