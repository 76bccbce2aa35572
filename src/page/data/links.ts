/**
 * The addresses of the page: a link to anything can be shared.
 */
const part = encodeURIComponent;

export const BASE = "/ui";
export const to = {
  overview: `${BASE}/`,
  tasks: (query: Readonly<Record<string, string>> = {}): string => {
    const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
    return search.size === 0 ? `${BASE}/tasks` : `${BASE}/tasks?${search}`;
  },
  task: (id: string): string => `${BASE}/tasks/${part(id)}`,
  attempt: (id: string, attempt: number): string => `${BASE}/tasks/${part(id)}?attempt=${attempt}`,
  plans: `${BASE}/plans`,
  graph: (kind: "plan" | "group" | "tree", id: string): string => `${BASE}/graph/${kind}/${part(id)}`,
  timeline: `${BASE}/timeline`,
  projects: `${BASE}/projects`,
  workers: `${BASE}/workers`,
  gates: `${BASE}/gates`,
  gate: (id: string): string => `${BASE}/gates/${part(id)}`,
  usage: `${BASE}/usage`,
  events: `${BASE}/events`,
  config: `${BASE}/config`,
  cluster: `${BASE}/cluster`,
};
