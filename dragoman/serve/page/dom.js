// Small helpers for the document.
export const $ = (id) => document.getElementById(id);

// Shows an element, or hides it from everybody.
export function show(id, visible) {
  $(id).hidden = !visible;
}

// An error, said in a sentence; "" takes it away.
export function trouble(text) {
  $("trouble").textContent = text;
  show("trouble", Boolean(text));
}

// What a person chose last time, on this machine alone; a browser may forbid to keep it.
export const memory = {
  get(key, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(key)) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(key, JSON.stringify(value));
    } catch { /* then it is forgotten */ }
  },
};
