// A <details> that is a menu: closed by Escape, by a choice, and by a click elsewhere.
export function makeMenu(menu, choose) {
  const close = () => { menu.open = false; };
  menu.addEventListener("click", ({ target }) => {
    if (!target.dataset.file) return;
    close();
    menu.querySelector("summary").focus();
    choose(target.dataset.file);
  });
  menu.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    close();
    menu.querySelector("summary").focus();
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (!menu.contains(target)) close();
  });
}
