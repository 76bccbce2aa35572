/**
 * Where the page begins.
 */
import { render } from "preact";
import { App } from "./app.tsx";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/views.css";
import "./styles/past.css";

render(<App />, document.getElementById("app") as HTMLElement);
