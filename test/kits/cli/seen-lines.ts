/** What a person sees at a terminal that was sent this: the few sequences that pictures in place use, obeyed. */
export function seen(bytes: string): string[] {
  const lines: string[] = [""];
  let [row, column] = [0, 0];
  for (const [part, up, isBelow, isRest] of bytes.matchAll(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal obeys
    /\u001b\[(\d+)A|(\u001b\[0J)|(\u001b\[K)|[\r\n]|[^\r\n\u001b]+/g,
  )) {
    if (isBelow !== undefined) lines.length = row + 1;
    if ((isBelow ?? isRest) !== undefined) lines[row] = lines[row]?.slice(0, column) ?? "";
    else if (up !== undefined) row -= Number(up);
    else if (part === "\n") lines[++row] ??= "";
    else if (part !== "\r") {
      lines[row] = `${lines[row]?.slice(0, column)}${part}${lines[row]?.slice(column + part.length)}`;
      column += part.length;
    }
    if (part === "\n" || part === "\r") column = 0;
  }
  return lines.slice(0, -1);
}
