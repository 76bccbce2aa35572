/**
 * Labels on the wire: texts by name on a task, and filters that name one as `key=value`.
 */
import * as s from "../schema/schema.ts";

const LABELS_MAX = 32;
const LABEL_KEY_MAX = 63;
const LABEL_VALUE_MAX = 256;
export const labelKey: s.Schema<string> = s.refined(
  s.name(LABEL_KEY_MAX),
  (key) => !key.includes("="),
  `a name of 1 to ${LABEL_KEY_MAX} characters without blanks and without =`,
);
export const labels = (): s.Schema<Readonly<Record<string, string>>> =>
  s.refined(
    s.table(s.text(0, LABEL_VALUE_MAX), labelKey),
    (given) => Object.keys(given).length <= LABELS_MAX,
    `an object of at most ${LABELS_MAX} texts by name`,
  );

/** What a filter names: `key=value`. */
const labelText = (): s.Schema<string> =>
  s.refined(
    s.text(2, LABEL_KEY_MAX + 1 + LABEL_VALUE_MAX),
    (text) => text.includes("=") && labelKey["~check"](text.slice(0, text.indexOf("="))),
    "a label such as team=web",
  );
export const labelFilter = (): s.Schema<string | readonly string[]> =>
  s.either(
    labelText(),
    s.list(labelText(), { min: 1, max: LABELS_MAX }),
    `a label such as team=web, or a list of at most ${LABELS_MAX}`,
  );
