/**
 * Server-sent events out of bytes, as the HTML standard has them.
 *
 * Bytes come cut anywhere, also in the middle of a character or between CR and LF. A message counts when the empty line
 * behind it has come; one that is cut off never happened. A line may not grow without bound.
 */

export type StreamMessage = { readonly id: string; readonly event: string; readonly data: string };
export type EventStream = {
  /** The messages that these bytes complete. */
  push(bytes: Uint8Array): StreamMessage[];
};

const HELD_MAX = 16 * 1024 * 1024;

export function createEventStream(): EventStream {
  const decoder = new TextDecoder();
  let held = "";
  let message = { id: "", event: "", data: [] as string[] };

  function take(line: string): StreamMessage | null {
    if (line === "") {
      const { id, event, data } = message;
      message = { id, event: "", data: [] };
      return data.length === 0 ? null : { id, event, data: data.join("\n") };
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line.startsWith(": ", colon) ? colon + 2 : colon + 1);
    if (field === "data") message.data.push(value);
    else if (field === "event") message.event = value;
    else if (field === "id" && !value.includes("\0")) message.id = value;
    return null;
  }

  return {
    push(bytes) {
      held += decoder.decode(bytes, { stream: true });
      const found: StreamMessage[] = [];
      for (;;) {
        const end = /\r\n|\n|\r(?=[\s\S])/.exec(held);
        if (end === null) break;
        const whole = take(held.slice(0, end.index));
        held = held.slice(end.index + end[0].length);
        if (whole !== null) found.push(whole);
      }
      if (held.length > HELD_MAX) throw new RangeError(`a line of the stream is longer than ${HELD_MAX} characters`);
      return found;
    },
  };
}
