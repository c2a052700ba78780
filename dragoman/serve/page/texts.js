// Which texts the speaker sees, as they were chosen the last time.
import { $, memory, show } from "./dom.js";

export function offerTexts() {
  const { source, interim } = memory.get("text", { source: true, interim: true });
  $("show-source").checked = source;
  $("show-interim").checked = interim;
  for (const id of ["show-source", "show-interim"]) $(id).addEventListener("change", showText);
}

// To write down what is spoken costs the server work, so it is asked for only where it is shown.
export function showsSource() {
  return $("show-source").checked && !$("source-row").hidden;
}

export function showText() {
  show("source-side", showsSource());
  document.body.classList.toggle("settled", !$("show-interim").checked);
  document.querySelectorAll(".of-source").forEach((item) => { item.hidden = !showsSource(); });
  memory.set("text", { source: $("show-source").checked, interim: $("show-interim").checked });
}
