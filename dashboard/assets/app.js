// What the dashboard's pages do by themselves. Without it they do everything, show times in UTC, and stay as they are until
// they are loaded again.

/** @param {string} selector */
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Times in the viewer's zone, with the exact instant in the title.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const formats = {
  full: { year: "numeric", month: "2-digit", day: "2-digit", ...clock },
  exact: { year: "numeric", month: "2-digit", day: "2-digit", ...clock, fractionalSecondDigits: 3 },
  day: { day: "numeric", month: "short" },
  minute: { hour: "2-digit", minute: "2-digit" },
  second: clock,
  fraction: { ...clock, fractionalSecondDigits: 3 },
};

// Swedes write dates as ISO 8601 has them, and days of a month are short in English.
const writers = Object.fromEntries(Object.entries(formats).map(([name, format]) => [
  name, new Intl.DateTimeFormat(name === "day" ? "en-GB" : "sv-SE", { ...format, timeZone: zone })]));

function written(instant, shows = "full") {
  const date = new Date(instant);
  return isNaN(date) ? null : (writers[shows] ?? writers.full).format(date).replace(",", ".");
}

// label is what stands at an axis: midnight shows the day that begins.
function label(instant, shows) {
  const text = written(instant, shows);
  return shows === "minute" && text === "00:00" ? written(instant, "day") : text;
}

function localise(root) {
  for (const time of all("time[datetime]", root)) {
    const text = written(time.dateTime);
    if (text === null) continue;
    time.title = time.dateTime;
    if (!("kept" in time.dataset)) time.textContent = text;
  }
  for (const text of all("text[data-time]", root)) {
    text.textContent = label(text.dataset.time, text.dataset.shows) ?? text.textContent;
  }
  for (const title of all("title[data-time]", root)) { // the first line of what a chart says is a time
    const [utc, ...rest] = title.textContent.split("\n");
    const exact = title.dataset.time.includes(".") ? "exact" : "full";
    title.textContent = [written(title.dataset.time, exact) ?? utc, ...rest].join("\n");
  }
  for (const place of all("[data-zone]", root)) {
    place.textContent = zone === "UTC" ? "" : `, shown in the zone ${zone}`;
  }
}

// How old figures are. An element with data-at says when its figures were found, by the server's clock, and is marked when
// they are old. A page that keeps itself up to date is as old as the last look that it showed, or that found no change.

const fresh = 10_000; // milliseconds
const server = { ahead: Number(document.body.dataset.clock) - performance.timeOrigin }; // of this clock, or a little less than it seems
let looked = Number(document.body.dataset.made) / 1e6; // when the server did

const serverTime = () => Date.now() + server.ahead;

function markAge(root) {
  for (const told of all("[data-at]", root)) told.classList.toggle("old", serverTime() - told.dataset.at > fresh);
}

function tellAge() {
  markAge(document);
  const old = serverTime() - looked > fresh;
  document.querySelector("main").classList.toggle("old", old);
  for (const live of all(".live")) {
    const asOf = written(looked, "second");
    const text = old && state.name === "on" ? `As of ${asOf}` : old && state.text ? `${state.text}, as of ${asOf}` : state.text;
    live.className = ["live", state.name, ...(old ? ["old"] : [])].join(" ");
    if (live.textContent !== text) live.textContent = text;
  }
}

// Live updates: the server says that something changed, and the page is fetched again. Its parts that have a name
// are replaced by the new ones, unless somebody is busy in them.

const leastPause = 2000; // milliseconds between two fetches
const later = { timer: 0, busy: false, wanted: false, last: Date.now() };
let paused = false;

function busyIn(part) {
  const selection = document.getSelection();
  const selects = selection && !selection.isCollapsed &&
    (part.contains(selection.anchorNode) || part.contains(selection.focusNode));
  const focus = document.activeElement;
  const filled = all("input, textarea", part).some((field) => (field.type === "checkbox"
    ? field.checked !== field.defaultChecked : field.value !== field.defaultValue));
  const chooses = part.querySelector(".chosen");
  return chooses || selects || filled || (focus !== document.body && part.contains(focus));
}

// pairs are the elements of two versions of a part that stand in the same place.
function pairs(selector, from, to) {
  const others = all(selector, to);
  return all(selector, from).flatMap((old, i) => (others[i] ? [[old, others[i]]] : []));
}

function replaceBy(page) {
  for (const old of all("[data-live]")) {
    const part = page.querySelector(`[data-live="${CSS.escape(old.dataset.live)}"]`);
    if (!part) continue;
    const node = document.adoptNode(part);
    localise(node);
    ready(node);
    markAge(node);
    for (const [was, is] of pairs("details", old, node)) is.open = was.open;
    old.classList.remove("behind");
    if (!old.classList.length) old.removeAttribute("class");
    if (node.isEqualNode(old)) continue;
    if (busyIn(old)) {
      old.classList.add("behind");
      continue;
    }
    const scrolled = pairs("pre, .scroll, table.rows", old, node).map(([was, is]) => [is, was.scrollLeft, was.scrollTop]);
    old.replaceWith(node);
    for (const [is, left, top] of scrolled) is.scrollTo(left, top);
    reach(node);
  }
}

async function refresh() {
  later.timer = 0;
  if (paused || document.hidden || later.busy) return;
  later.busy = true;
  later.wanted = false;
  try {
    const asked = Date.now();
    const answer = await fetch(location.href, { headers: { "X-Partial": document.body.dataset.made }, redirect: "error", signal: AbortSignal.timeout(20_000) });
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (paused) return;
      document.body.dataset.made = page.body.dataset.made;
      looked = Number(page.body.dataset.made) / 1e6;
      server.ahead = Number(page.body.dataset.clock) - asked;
      replaceBy(page);
      say("on", "Live");
    } else if (answer.status === 401 || answer.status === 403) {
      say("off", "Signed out: load the page again");
    }
  } catch {
    later.wanted = true; // the stream says when the server is back
  } finally {
    later.busy = false;
    later.last = Date.now();
    if (later.wanted) schedule();
  }
}

function schedule() {
  later.wanted = true;
  if (later.timer || later.busy || paused || document.hidden) return;
  later.timer = setTimeout(refresh, Math.max(0, later.last + leastPause - Date.now()));
}

const state = { name: "", text: "" };

function say(name, text) {
  Object.assign(state, { name, text });
  tellAge();
}

function follow(url) {
  let stream = null;
  const open = () => {
    if (stream || paused || document.hidden) return;
    stream = new EventSource(url);
    stream.addEventListener("open", () => {
      say("on", "Live");
      schedule(); // for what happened meanwhile
    });
    stream.addEventListener("change", schedule);
    stream.addEventListener("looked", ({ data }) => {
      if (later.wanted || later.busy) return; // what is shown is older
      looked = Number(data);
      say("on", "Live");
    });
    stream.addEventListener("trouble", () => say("off", "The page cannot be made just now"));
    stream.addEventListener("error", () => {
      say("off", "Connection lost");
      if (stream?.readyState === EventSource.CLOSED) { // the browser gave up: the server refused
        stream = null;
        setTimeout(open, 10 * leastPause);
      }
    });
  };
  const close = () => {
    stream?.close();
    stream = null;
  };
  const turn = () => {
    if (paused || document.hidden) close();
    else open();
    if (paused) say("paused", "Paused");
  };
  for (const button of all("[data-pause]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? "Resume" : "Pause";
      turn();
    });
  }
  document.addEventListener("visibilitychange", turn);
  addEventListener("pagehide", close);
  addEventListener("pageshow", turn);
  turn();
}

// Boxes that tick all of their table, and buttons that copy.

function ready(root) {
  for (const box of all("[data-select-all]", root)) {
    const others = () => all("tbody input[type=checkbox]", box.closest("table")).filter((other) => other !== box);
    box.hidden = false;
    box.addEventListener("change", () => {
      for (const other of others()) other.checked = box.checked;
    });
    box.closest("table").addEventListener("change", () => {
      const ticked = others().filter((other) => other.checked).length;
      box.checked = ticked > 0 && ticked === others().length;
      box.indeterminate = ticked > 0 && !box.checked;
    });
  }
  for (const button of all("[data-copy]", root)) {
    button.hidden = !navigator.clipboard; // there is none without TLS, but on this machine
    button.addEventListener("click", async () => {
      const text = button.dataset.copy || button.closest("section, article")?.querySelector("pre, code")?.textContent || "";
      const said = button.textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed";
      }
      setTimeout(() => { button.textContent = said; }, 1500);
    });
  }
}

// reach lets keys scroll what is larger than its place.
function reach(root) {
  for (const box of all("pre, .scroll, table.rows", root)) {
    if (box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}

// showHere scrolls the navigation of a phone to the page that is shown. To scroll the link into view would have the tabulator
// key begin there.
function showHere() {
  const here = document.querySelector("nav a[aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - (here.parentElement.clientWidth - here.clientWidth) / 2;
}

// Light and dark. The choice is kept by the browser.

const themes = ["", "light", "dark"];
const themeNames = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function remember(theme) {
  try {
    localStorage.setItem("stint-theme", theme);
  } catch { /* the browser keeps nothing: it holds for this page */ }
}

function wear(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  for (const button of all("[data-theme-toggle]")) {
    button.hidden = false;
    button.textContent = themeNames[theme];
  }
}

function offerThemes() {
  let theme = document.documentElement.dataset.theme ?? ""; // theme.js found it
  wear(theme);
  for (const button of all("[data-theme-toggle]")) {
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      remember(theme);
      wear(theme);
    });
  }
}

// Keys: / to the filter, g and a letter to a page, ? to what there is.

function makes(name, children = [], attributes = {}) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Times in forms are in the viewer's zone, and sent as UTC. A duration, such as 1h, stays as it is.

const zoneless = /^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?$/;
const exact = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function askTimes() {
  for (const field of all("input[data-when]")) {
    if (exact.test(field.value)) field.value = field.defaultValue = written(field.value);
    const picker = makes("input", [], { type: "datetime-local", class: "picker", tabindex: "-1", "aria-hidden": "true" });
    const button = makes("button", ["Pick"], { type: "button", "aria-label": `Pick a time for: ${field.parentElement.firstChild.textContent.trim()}` });
    button.addEventListener("click", () => picker.showPicker());
    picker.addEventListener("change", () => { field.value = picker.value.replace("T", " "); });
    const label = field.parentElement, place = makes("span", [], { class: "when" });
    label.replaceWith(place);
    place.append(label, button, picker);
    field.form.addEventListener("submit", () => {
      if (zoneless.test(field.value)) field.value = new Date(`${field.value.replace(" ", "T")}${field.value.length === 10 ? "T00:00" : ""}`).toISOString();
    });
  }
}

// Who drags across a chart chooses a time, and is led to the page that shows it. Pages have a form for the same.

const drag = { plot: null, began: 0, from: 0, to: 0, ended: false };

// stepAt is the place of a point on the axis of a chart, in steps of it.
function stepAt(plot, x) {
  const box = plot.getBoundingClientRect();
  return Math.min(Math.max((x - box.left) / box.width, 0), 1) * plot.dataset.steps;
}

function endDrag() {
  drag.plot?.querySelector(".chosen")?.remove();
  drag.plot = null;
}

function chooseTimes() {
  document.addEventListener("pointerdown", (event) => {
    endDrag();
    drag.ended = false;
    const plot = event.target.closest?.("svg[data-zoom]");
    if (plot && event.button === 0 && event.isPrimary) Object.assign(drag, { plot, began: event.clientX });
  });
  document.addEventListener("pointermove", ({ clientX }) => {
    if (!drag.plot) return;
    let chosen = drag.plot.querySelector(".chosen");
    if (!chosen && Math.abs(clientX - drag.began) < 6) return; // it may become a click
    if (!chosen) {
      chosen = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [key, value] of Object.entries({ class: "chosen", height: 1000, "pointer-events": "none" })) chosen.setAttribute(key, value);
      drag.plot.querySelector(".data").append(chosen);
    }
    const [first, last] = [drag.began, clientX].map((x) => stepAt(drag.plot, x)).sort((a, b) => a - b);
    drag.from = Math.min(Math.floor(first), drag.plot.dataset.steps - 1);
    drag.to = Math.max(Math.ceil(last), drag.from + 1);
    const width = 1000 / drag.plot.dataset.steps;
    chosen.setAttribute("x", drag.from * width);
    chosen.setAttribute("width", (drag.to - drag.from) * width);
  });
  document.addEventListener("pointerup", () => {
    const { plot, from, to } = drag;
    const chosen = plot?.querySelector(".chosen");
    endDrag();
    if (!chosen) return;
    drag.ended = true;
    const at = (step) => new Date(Date.parse(plot.dataset.from) + step * plot.dataset.step).toISOString().replace(".000Z", "Z");
    location.assign(`${plot.dataset.zoom}?${new URLSearchParams({ from: at(from), to: at(to) })}`);
  });
  document.addEventListener("pointercancel", endDrag);
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") endDrag(); });
  document.addEventListener("dragstart", (event) => { if (event.target.closest?.("svg[data-zoom]")) event.preventDefault(); }); // of a bar, which is a link
  document.addEventListener("click", (event) => {
    if (drag.ended) event.preventDefault(); // it belongs to the drag
    drag.ended = false;
  }, true);
}

function help() {
  document.querySelector("dialog.help")?.remove();
  const facts = makes("dl", [], { class: "facts" });
  const add = (keys, what) => facts.append(
    makes("dt", keys.flatMap((key, i) => [i ? " " : "", makes("kbd", [key])])), makes("dd", [what]));
  add(["/"], "to the search box");
  add(["f"], "to the filter of the page");
  for (const link of all("a[data-key]")) add(["g", link.dataset.key], `to ${link.textContent.trim()}`);
  add(["?"], "shows this");
  const dialog = makes("dialog", [
    makes("h2", ["Keys"], { id: "keys" }), facts,
    makes("form", [makes("button", ["Close"])], { method: "dialog" }),
  ], { class: "help", "aria-labelledby": "keys" });
  document.body.append(dialog);
  dialog.showModal();
}

function listenToKeys() {
  let went = 0; // when g was pressed
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea, [contenteditable], dialog[open]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const after = Date.now() - went < 1500;
    went = 0;
    if (after) {
      const link = all("a[data-key]").find((a) => a.dataset.key === event.key);
      if (link) {
        event.preventDefault();
        link.click();
      }
    } else if (event.key === "g") {
      went = Date.now();
    } else if (event.key === "?") {
      help();
    } else if (event.key === "/" || event.key === "f") {
      const field = event.key === "/" ? document.querySelector("form.find input") : document.querySelector("[data-focus]") ??
        document.querySelector("form.filter :is(input:not([type=hidden], [type=checkbox], [type=radio]), select)");
      if (!field) return;
      event.preventDefault();
      field.focus();
      field.select?.();
    }
  });
}

offerThemes();
askTimes();
showHere();
localise(document);
ready(document);
reach(document);
listenToKeys();
chooseTimes();
tellAge();
setInterval(tellAge, 1000);
if (document.body.dataset.events) follow(document.body.dataset.events);
