// The button that turns the sound off for a while, as for a question in the hall. The talk goes on: silence is
// sent, so that nobody takes the line for dead.
import { $, show } from "./dom.js";

export class Pause {
  on = false;

  // `change(on)` is told what somebody wants.
  constructor(change) {
    $("pause").addEventListener("click", () => {
      this.set(!this.on);
      change(this.on);
    });
  }

  // Of a new sound, which is never paused; there is nothing to pause of a file.
  offer(yes) {
    this.set(false);
    show("pause", yes);
  }

  set(on) {
    this.on = on;
    $("pause").setAttribute("aria-pressed", on);
  }
}
