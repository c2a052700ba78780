// The reader's own text size, kept for the next time.
import { $, memory } from "./dom.js";

const SIZES = [0.8, 0.9, 1, 1.15, 1.3, 1.5, 1.75, 2, 2.4, 2.8, 3.4];

export function offerSizes(key) {
  let at = memory.get(key, SIZES.indexOf(1));
  const set = (next) => {
    at = Math.max(0, Math.min(SIZES.length - 1, next));
    document.documentElement.style.setProperty("--size", SIZES[at]);
    memory.set(key, at);
  };
  $("smaller").addEventListener("click", () => set(at - 1));
  $("larger").addEventListener("click", () => set(at + 1));
  set(at);
}
