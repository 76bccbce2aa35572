/**
 * The drawings of the navigation, each of a few lines.
 */
import type { JSX } from "preact";

const PATHS = {
  overview: "M2 9h5V2H2zM9 14h5V7H9zM2 14h5v-3H2zM9 5h5V2H9z",
  tasks: "M5 4h9M5 8h9M5 12h9M2 4h.01M2 8h.01M2 12h.01",
  plans: "M4 3v6a3 3 0 0 0 3 3h5M4 7h4a3 3 0 0 0 3-3V3M10 10l2 2-2 2",
  timeline: "M2 3v11h12M5 5h4M7 8h5M5 11h3",
  projects: "M8 2v12M3 5h7.5a2.2 2.2 0 0 1 0 4.5H5.500a2.200 2.200 0 0 0 0 4.500H13",
  workers: "M3 3h10v7H3zM6 14h4M8 10v4",
  gates: "M2 14V5a6 6 0 0 1 12 0v9M6 14V6M10 14V6",
  usage: "M3 14V9M8 14V3M13 14V6",
  events: "M4 2h8v12H4zM6.500 5h3M6.500 8h3M6.500 11h2",
  config: "M3 4h6M12 4h1M3 8h1M7 8h6M3 12h7M10.500 2.500v3M5.500 6.500v3M11.500 10.500v3",
  cluster: "M6 2h4v4H6zM1.500 10h4v4h-4zM10.500 10h4v4h-4zM8 6v2M3.500 10V8h9v2",
} as const;
export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }): JSX.Element => (
  <svg viewBox="0 0 16 16" aria-hidden="true">
    <path
      d={PATHS[name]}
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
    />
  </svg>
);

export const Mark = (): JSX.Element => (
  <svg viewBox="0 0 16 16" aria-hidden="true">
    <path
      d="M8 15V9L3 2M8 9l5-7"
      fill="none"
      stroke="currentColor"
      stroke-width="2.500"
      stroke-linecap="round"
      stroke-linejoin="round"
    />
  </svg>
);
