/** What other layers may use of this room. */

export { type Knobs, knob, namedSection, type Section, section, spanKnob } from "./knobs.ts";
