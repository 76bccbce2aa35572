/**
 * The frame of the page: who looks, where they can go, whether what they see is live.
 */
import type { ComponentType, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { LocationProvider, Route, Router, useLocation } from "preact-iso";
import type { Pulse } from "../protocol/generated/index.ts";
import { ask, logOut, session } from "./data/ask.ts";
import { BASE, to } from "./data/links.ts";
import { keepLive, live } from "./data/live.ts";
import { doing, said, unsay } from "./data/say.ts";
import { useStore } from "./data/store.ts";
import { createLooker } from "./data/use-call.ts";
import { useCluster, useRights, who } from "./data/who.ts";
import { timeOf } from "./data/words.ts";
import { Questions } from "./parts/dialog.tsx";
import { Icon, type IconName, Mark } from "./parts/icons.tsx";
import { later } from "./parts/later.tsx";
import { Login } from "./views/login.tsx";
import { Overview } from "./views/overview.tsx";
import { TaskView } from "./views/task.tsx";
import { Tasks } from "./views/tasks.tsx";

type Shown = { readonly path: string; readonly component: ComponentType };
const view = (path: string, component: ComponentType<never>): Shown => ({
  path: BASE + path,
  component: component as ComponentType,
});

const Graph: ComponentType<never> = later(() => import("./views/graph.tsx"));
const VIEWS: readonly Shown[] = [
  view("/", Overview),
  view("/tasks", Tasks),
  view("/tasks/:id", TaskView),
  view(
    "/plans",
    later(() => import("./views/plans.tsx")),
  ),
  view("/graph/:id", Graph),
  view("/graph/:kind/:id", Graph),
  view(
    "/timeline",
    later(() => import("./views/timeline.tsx")),
  ),
  view(
    "/projects",
    later(() => import("./views/projects.tsx")),
  ),
  view(
    "/workers",
    later(() => import("./views/workers.tsx")),
  ),
  view(
    "/gates",
    later(() => import("./views/gates.tsx")),
  ),
  view(
    "/gates/:id",
    later(() => import("./views/gate.tsx")),
  ),
  view(
    "/usage",
    later(() => import("./views/usage.tsx")),
  ),
  view(
    "/events",
    later(() => import("./views/events.tsx")),
  ),
  view(
    "/cluster",
    later(() => import("./views/cluster.tsx")),
  ),
  view(
    "/config",
    later(() => import("./views/config.tsx")),
  ),
];

type Place = readonly [icon: IconName, text: string, href: string];
const PLACES: readonly (readonly [title: string, places: readonly Place[]])[] = [
  [
    "Work",
    [
      ["overview", "Overview", to.overview],
      ["tasks", "Tasks", to.tasks()],
      ["plans", "Plans", to.plans],
      ["timeline", "Timeline", to.timeline],
    ],
  ],
  [
    "Fleet",
    [
      ["projects", "Projects", to.projects],
      ["workers", "Workers", to.workers],
      ["gates", "Gates", to.gates],
      ["usage", "Usage", to.usage],
    ],
  ],
  [
    "Inside",
    [
      ["events", "Events", to.events],
      ["config", "Config", to.config],
      ["cluster", "Cluster", to.cluster],
    ],
  ],
];

/** What only those see who may see the whole fleet. */
const FOR_ALL_OF_IT: ReadonlySet<IconName> = new Set<IconName>(["config", "cluster"]);

export function App(): JSX.Element {
  const { isRefused } = useStore(session);
  useEffect(keepLive, []);
  return (
    <LocationProvider scope={/^\/ui(\/|$)/}>
      {isRefused ? <Login /> : <Shell />}
      <Said />
      <Questions />
    </LocationProvider>
  );
}

function Shell(): JSX.Element {
  const { token } = useStore(session);
  const { found } = useStore(live);
  // Nobody has the buttons of the token before.
  useEffect(() => () => who.set(null), [token]);
  useEffect(() => {
    const looker = createLooker({
      look: async (signal) => who.set(await ask("whoami", {}, signal)),
      failed: () => {},
    });
    looker.now();
    return looker.stop;
  }, [token, found]);
  return (
    <div class="shell">
      <a class="button skip" href="#main">
        Skip to the view
      </a>
      <Side />
      <div class="body">
        <Banners />
        <main class="main" id="main" tabIndex={-1}>
          <Router onRouteChange={() => window.scrollTo(0, 0)}>
            {VIEWS.map(({ path, component }) => (
              <Route key={path} path={path} component={component} />
            ))}
            <Route default component={Nowhere} />
          </Router>
        </main>
      </div>
    </div>
  );
}

function Side(): JSX.Element {
  const { path } = useLocation();
  const { pulse } = useStore(live);
  const { mayWatch, isScoped, who: me } = useRights();
  const isNode = useCluster() === true;
  const isShown = ([icon]: Place): boolean => (mayWatch || !FOR_ALL_OF_IT.has(icon)) && (isNode || icon !== "cluster");
  // Of whoever sees a part of the fleet it is not known how many are theirs.
  const asking = me === null || isScoped ? 0 : (pulse?.asking ?? 0);
  const isHere = (href: string): boolean =>
    href === to.overview ? path === href || path === BASE : path === href || path.startsWith(`${href}/`);
  const isPlan = path.startsWith(`${BASE}/graph/`);
  const side = useRef<HTMLDivElement>(null);
  // On a small screen the places stand in a row that scrolls; some come only when it is known who looks. Not by
  // scrollIntoView: that would also move where the Tab key begins, past the link that skips all this.
  useEffect(() => {
    const row = side.current;
    const here = row?.querySelector<HTMLElement>("[aria-current]");
    if (row == null || here == null) return;
    const middle = here.getBoundingClientRect().left - row.getBoundingClientRect().left + here.offsetWidth / 2;
    row.scrollBy({ left: middle - row.clientWidth / 2 });
  }, [path, mayWatch, isNode]);
  return (
    <div class="side" ref={side}>
      <a class="brand" href={to.overview}>
        <Mark />
        <span>Drover</span>
      </a>
      <nav class="side-groups" aria-label="Views">
        {PLACES.map(([title, places]) => (
          <div key={title}>
            <p class="nav-title">{title}</p>
            <div class="nav">
              {places.filter(isShown).map(([icon, text, href]) => (
                <a
                  key={href}
                  href={href}
                  aria-current={isHere(href) || (isPlan && href === to.plans) ? "page" : undefined}
                >
                  <Icon name={icon} />
                  {text}
                  {icon === "tasks" && asking > 0 ? (
                    <span class="tally" title="Tasks that wait for somebody's word">
                      {asking}
                    </span>
                  ) : null}
                </a>
              ))}
            </div>
          </div>
        ))}
      </nav>
      <Foot />
    </div>
  );
}

const HEALTH = { connecting: "connecting…", live: "live", lost: "connection lost" } as const;

function Foot(): JSX.Element {
  const { state, pulse } = useStore(live);
  const me = useStore(who);
  const { token } = useStore(session);
  const scope = [me?.agentId, me?.projects?.join(", ")].filter((part) => part !== undefined).join(" in ");
  return (
    <div class="side-foot">
      <span class="health" data-state={state}>
        <i />
        {HEALTH[state]}
      </span>
      {me === null || token === null ? null : (
        <span class="at-rest">
          {me.role}
          {scope === "" ? "" : ` (${scope})`} ·{" "}
          <button type="button" class="button is-small is-plain" onClick={logOut}>
            Log out
          </button>
        </span>
      )}
      <span class="at-rest">
        <a href="/docs/">The API</a> · <a href="/openapi.json">openapi.json</a>
      </span>
      <span class="at-rest">{pulse === null ? "" : `Drover ${pulse.version}`}</span>
    </div>
  );
}

const TROUBLE = {
  "journal-away": "This node does not reach the journal",
  behind: "This node is behind its journal",
  "read-only": "The journal is full, so the cluster takes nothing",
} as const;

/** What is wrong with a node, and of when that is what it shows. */
function NodeTrouble({ trouble, since }: NonNullable<Pulse["node"]>): JSX.Element | null {
  const { mayWatch } = useRights();
  const { path } = useLocation();
  if (trouble === undefined) return null;
  return (
    <p class="banner is-bad">
      {TROUBLE[trouble]}.{since === undefined ? "" : ` What you see is of ${timeOf(since)}.`}
      {mayWatch && path !== to.cluster ? <a href={to.cluster}>See the cluster</a> : null}
    </p>
  );
}

function Banners(): JSX.Element {
  const { state, why, pulse } = useStore(live);
  const { mayManage } = useRights();
  return (
    <div role="status">
      {state === "lost" ? (
        <p class="banner is-bad">
          {why === "" ? "The connection to the server is lost." : `The server cannot answer now: ${why}.`} What you see
          may be old; trying again…
        </p>
      ) : null}
      {state === "live" && pulse?.node?.trouble !== undefined ? <NodeTrouble {...pulse.node} /> : null}
      {pulse?.paused === true ? (
        <p class="banner">
          The fleet is paused: what runs goes on, and nothing starts.
          {mayManage ? (
            <button
              type="button"
              class="button is-small"
              onClick={() => doing(() => ask("resume", { body: {} }), "The fleet goes on.")}
            >
              Resume
            </button>
          ) : null}
        </p>
      ) : null}
    </div>
  );
}

function Said(): JSX.Element {
  const lines = useStore(said);
  return (
    <ul class="said" aria-live="polite">
      {lines.map(({ id, text, isBad }) => (
        <li key={id} class={isBad ? "is-bad" : ""}>
          <span>{text}</span>
          <button type="button" class="button is-small is-plain" aria-label="Close" onClick={() => unsay(id)}>
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

function Nowhere(): JSX.Element {
  return (
    <div class="empty">
      <h1>There is nothing here</h1>
      <p>
        <a href={to.overview}>Go to the overview</a>
      </p>
    </div>
  );
}
