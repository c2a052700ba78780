// Small helpers for the document.
export const $ = (id) => document.getElementById(id);

// Shows an element, or hides it from everybody.
export function show(id, visible) {
  $(id).hidden = !visible;
}

export const ON_SCREEN = 50; // paragraphs that are more than any screen shows

// An error, said in a sentence; "" takes it away.
export function trouble(text) {
  $("trouble").textContent = text;
  show("trouble", Boolean(text));
}

// A browser may forbid to keep anything; `store()` then throws.
function memoryIn(store) {
  return {
    get(key, otherwise) {
      try {
        return JSON.parse(store().getItem(key)) ?? otherwise;
      } catch {
        return otherwise;
      }
    },
    set(key, value) {
      try {
        store().setItem(key, JSON.stringify(value));
      } catch { /* then it is forgotten */ }
    },
  };
}

// What a person chose last time, on this machine alone.
export const memory = memoryIn(() => localStorage);

// What belongs to this tab, also when its page is loaded again, and to no other.
export const tabMemory = memoryIn(() => sessionStorage);
