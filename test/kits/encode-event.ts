/**
 * The bytes of one event alone, as the log stores them.
 */
import type { Seq } from "../../src/core/base/index.ts";
import type { Event } from "../../src/core/model/index.ts";
import { createBlock } from "../../src/log/format/byte-block.ts";
import { writeEvent } from "../../src/log/format/codec.ts";

export function encodeEvent(event: Event, cause: Seq | null): Uint8Array {
  const block = createBlock(512);
  writeEvent(block, event, cause);
  return block.bytes.subarray(0, block.length);
}
