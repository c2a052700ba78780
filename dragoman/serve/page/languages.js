import { at } from "./socket.js";

// Languages that are written from right to left.
const RIGHT_TO_LEFT = new Set(["ar", "arc", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"]);

// Which way a language runs; "auto": its letters decide.
export function direction(code) {
  if (!code) return "auto";
  return RIGHT_TO_LEFT.has(code) ? "rtl" : "ltr";
}

export async function about() {
  return (await fetch(at("/v1/languages"))).json();
}
