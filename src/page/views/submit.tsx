/**
 * A form to submit a task, with the words of the protocol's own schema as help.
 *
 * The fields that most tasks have stand as inputs; everything else goes as JSON, and the server says what is wrong with
 * it by the name of the field.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { TaskBody } from "../../protocol/generated/index.ts";
import { ask, open, Refused } from "../data/ask.ts";
import { to } from "../data/links.ts";
import { say } from "../data/say.ts";
import { useRights } from "../data/who.ts";
import { Dialog } from "../parts/dialog.tsx";

const PLAIN = ["agentId", "action", "project", "type", "priority", "id"] as const;
const MUST = new Set<string>(["agentId", "action"]);
const WHOLE = /^-?\d+$/;

/** The sentence of each field of a task, as the OpenAPI document has it. */
type Help = Readonly<Record<string, string>>;

async function readHelp(): Promise<Help> {
  type Shown = { properties?: Record<string, { description?: string }>; $ref?: string };
  const document = (await (await open("/openapi.json")).json()) as {
    paths: Record<string, Record<string, { requestBody: { content: Record<string, { schema: Shown }> } }>>;
    components: { schemas: Record<string, Shown> };
  };
  const given = document.paths["/tasks"]?.post?.requestBody.content["application/json"]?.schema ?? {};
  const schema = given.$ref === undefined ? given : document.components.schemas[given.$ref.split("/").at(-1) ?? ""];
  const fields = Object.entries(schema?.properties ?? {});
  return Object.fromEntries(fields.map(([name, { description = "" }]) => [name, description]));
}

function bodyOf(values: Readonly<Record<string, string>>, more: string): TaskBody {
  const given = PLAIN.flatMap((key): [string, unknown][] => {
    const value = values[key]?.trim() ?? "";
    if (value === "") return [];
    return [[key, key === "priority" && WHOLE.test(value) ? Number(value) : value]];
  });
  const rest = more.trim() === "" ? {} : (JSON.parse(more) as object);
  return { ...Object.fromEntries(given), ...rest } as TaskBody;
}

/** A sentence of the schema: what stands between backticks is code. */
const Words = ({ children }: { children: string }): JSX.Element => (
  <>{children.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>
);

export function SubmitForm({ onClose }: { onClose: () => void }): JSX.Element {
  const { route } = useLocation();
  const { who } = useRights();
  const [help, setHelp] = useState<Help>({});
  const [values, setValues] = useState<Readonly<Record<string, string>>>({
    agentId: who?.agentId ?? "",
    project: who?.project ?? "",
  });
  const [more, setMore] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<{ field: string; text: string } | null>(null);
  useEffect(() => {
    void readHelp().then(setHelp, () => {});
  }, []);
  async function submit(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    try {
      const { taskId } = await ask("submit", { body: bodyOf(values, more) });
      say(`${taskId} is submitted.`);
      onClose();
      route(to.task(taskId));
    } catch (error) {
      const field = error instanceof Refused ? String(error.details.field ?? "") : "";
      const text = error instanceof SyntaxError ? `This is no JSON: ${error.message}` : (error as Error).message;
      setProblem({ field: error instanceof SyntaxError ? "more" : field, text });
      setBusy(false);
    }
  }
  const isPlain = PLAIN.some((key) => key === problem?.field);
  return (
    <Dialog label="Submit a task" onClose={onClose} onSubmit={() => void submit()}>
      <h1>Submit a task</h1>
      <div class="submit-fields">
        {PLAIN.map((key) => (
          <label key={key} class="field">
            <span>
              {key}
              {MUST.has(key) ? <span class="bad"> *</span> : null}
            </span>
            <input
              class="input"
              name={key}
              required={MUST.has(key)}
              value={values[key] ?? ""}
              onInput={(event) => setValues({ ...values, [key]: event.currentTarget.value })}
            />
            <span class="hint">
              <Words>{help[key] ?? ""}</Words>
            </span>
            {problem?.field === key ? <span class="bad">{problem.text}</span> : null}
          </label>
        ))}
      </div>
      <label class="field">
        <span>Everything else, as JSON</span>
        <textarea
          class="textarea"
          name="more"
          placeholder={'{ "params": { "command": "echo hello" }, "needs": ["other-task"], "capabilities": ["git"] }'}
          value={more}
          onInput={(event) => setMore(event.currentTarget.value)}
        />
      </label>
      <details class="fold">
        <summary>All fields</summary>
        <dl class="facts submit-help">
          {Object.entries(help).map(([name, text]) => (
            <>
              <dt key={name} class="mono">
                {name}
              </dt>
              <dd>
                <Words>{text}</Words>
              </dd>
            </>
          ))}
        </dl>
      </details>
      {problem === null || isPlain ? null : (
        <p class="failure" role="alert">
          {problem.text}
        </p>
      )}
      <footer>
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
        <button type="submit" class="button is-main" disabled={isBusy}>
          Submit
        </button>
      </footer>
    </Dialog>
  );
}
