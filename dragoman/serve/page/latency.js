// The slider between sooner and surer.
import { $, show } from "./dom.js";

let offered = []; // ms

// As many stops as something is tuned for; with one there is nothing to choose. `change(ms)` is told.
export function offerLatencies(latencies, change) {
  offered = latencies;
  const slider = $("latency");
  const last = offered.length - 1;
  slider.max = slider.value = last;
  show("latency-row", last > 0);
  if (last >= 0) tell();
  slider.addEventListener("input", () => {
    slider.dataset.touched = "yes";
    tell();
    change(chosen());
  });
}

// What somebody has chosen, in ms; null: nothing.
export function chosenLatency() {
  return $("latency").dataset.touched ? chosen() : null;
}

const chosen = () => offered[Number($("latency").value)];

function tell() {
  $("latency-now").value = $("latency").ariaValueText = `about ${(chosen() / 1000).toFixed(1)} s`;
}
