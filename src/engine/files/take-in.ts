/**
 * Taking a content in: written as it comes, and hashed on the way, so that it stands under its name or not at all.
 *
 * Whoever takes it in is asked for every chunk, before that is written, and decides at the end what becomes of it. What
 * goes wrong leaves nothing behind.
 */
import { createHash } from "node:crypto";
import type { StoredFile } from "../../protocol/index.ts";
import type { ArrivingContent, FileMedium } from "./medium.ts";

type TakenIn<Kept> = {
  readonly content: AsyncIterable<Uint8Array>;
  /** Throws if so many bytes more, which make it so large, are too many. */
  readonly admit: (bytes: number, size: number) => Promise<void> | void;
  /** Keeps what has come, or drops it. */
  readonly end: (came: StoredFile, sink: ArrivingContent) => Promise<Kept>;
};

export async function takeIn<Kept>(medium: FileMedium, { content, admit, end }: TakenIn<Kept>): Promise<Kept> {
  const sink = await medium.receive();
  const digest = createHash("sha256");
  let size = 0;
  try {
    for await (const chunk of content) {
      size += chunk.length;
      await admit(chunk.length, size);
      digest.update(chunk);
      await sink.write(chunk);
    }
    return await end({ hash: digest.digest("hex"), size }, sink);
  } catch (error) {
    await sink.drop().catch(() => {});
    throw error;
  }
}
