// Small pieces of pages: elements, cards, mixes, numbers, and questions to the server.
// Texts from the server are set as text, never as markup.

const SIGNS = { c: "♣", d: "♦", h: "♥", s: "♠" };
const SUIT_WORDS = { c: "clubs", d: "diamonds", h: "hearts", s: "spades" };
const RANK_WORDS = { T: "ten", J: "jack", Q: "queen", K: "king", A: "ace" };

/** An element: attributes, `on` for events, `set` for style properties; children are texts or nodes. */
export function el(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, work] of Object.entries(value)) made.addEventListener(event, work);
    else if (key === "set") for (const [property, text] of Object.entries(value)) made.style.setProperty(property, text);
    else if (key === "data") Object.assign(made.dataset, value);
    else if (key in made && key !== "list" && key !== "form") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
export const whole = (number) => Math.round(number).toLocaleString("en-US");
export const signed = (number, digits = 0) =>
  (number >= 0 ? "+" : "−") + Math.abs(number).toLocaleString("en-US", { maximumFractionDigits: digits });

/** A card's name for those who hear the page. */
export const cardWords = (text) => `${RANK_WORDS[text[0]] ?? text[0]} of ${SUIT_WORDS[text[1]]}`;

/** One card drawn; without a text its back. */
export function card(text, extra = "") {
  if (!text) return el("span", { className: `card back ${extra}`, role: "img", ariaLabel: "hidden card" }, "?");
  const red = text[1] === "d" || text[1] === "h" ? "red" : "";
  const face = `${text[0] === "T" ? "10" : text[0]}${SIGNS[text[1]]}\ufe0e`;
  return el("span", { className: `card suit-${text[1]} ${red} ${extra}`, role: "img", ariaLabel: cardWords(text) }, face);
}

/** The cards of a text such as AsKd. */
export const splitCards = (text) => (text ?? "").match(/../g) ?? [];

/** A mix as the background of something: the most aggressive action on the left. */
export function stripes(mix) {
  const stops = [];
  let at = 0;
  for (let i = mix.length - 1; i >= 0; i--) {
    if (mix[i] <= 0) continue;
    const end = Math.min(100, at + 100 * mix[i]);
    stops.push(`var(--a${i}) ${at.toFixed(2)}% ${end.toFixed(2)}%`);
    at = end;
  }
  return stops.length ? `linear-gradient(90deg, ${stops.join(", ")})` : "none";
}

/** A mix in words: `raise 80 %, call 20 %`. */
export function mixWords(mix, labels, digits = 0) {
  const said = [];
  for (let i = mix.length - 1; i >= 0; i--) if (mix[i] >= 0.0005) said.push(`${labels[i]} ${percent(mix[i], digits)}`);
  return said.join(", ");
}

/** A mix as a bar with the shares that fit in it. */
export function mixBar(mix, labels) {
  const bar = el("div", { className: "mix", role: "img", ariaLabel: mixWords(mix, labels) });
  for (let i = mix.length - 1; i >= 0; i--) {
    if (mix[i] < 0.0005) continue;
    const title = `${labels[i]} ${percent(mix[i])}`;
    bar.append(el("span", { className: `b${i}`, title, set: { width: `${100 * mix[i]}%` } },
      mix[i] > 0.12 ? Math.round(100 * mix[i]).toString() : ""));
  }
  return bar;
}

/** What the colours mean. */
export function legend(labels) {
  const items = labels.map((label, i) => el("span", {}, el("i", { className: `b${i}` }), label));
  return el("div", { className: "key" }, items.reverse());
}

/** A labelled choice; options are [value, text]. */
export function choice(label, options, value, change) {
  const select = el("select", { on: { change: () => change(select.value) } });
  for (const [key, text] of options) select.append(el("option", { value: key, selected: key === value }, text));
  return el("label", { className: "field" }, el("span", {}, label), select);
}

const token = document.querySelector("meta[name=token]").content;
const busy = () => document.getElementById("view");

/** Say what is wrong, or that nothing is. */
export function complain(sentence) {
  const place = document.getElementById("error");
  place.textContent = sentence ?? "";
  place.hidden = !sentence;
}

async function answered(request) {
  busy().setAttribute("aria-busy", "true");
  try {
    const answer = await request;
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error ?? "the server gave no answer");
    complain(null);
    return said;
  } catch (error) {
    const lost = error instanceof TypeError;
    const sentence = lost ? "The server does not answer: is it still running?" : error.message;
    complain(sentence);
    throw new Error(sentence);
  } finally {
    busy().removeAttribute("aria-busy");
  }
}

/** Ask the server; parameters that are empty are left out. */
export function ask(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value != null));
  return answered(fetch(`/api/${path}${query.size ? `?${query}` : ""}`));
}

/** Ask the server to do something. */
export function tell(path, body = {}) {
  const headers = { "Content-Type": "application/json", "X-Pipeline-Token": token };
  return answered(fetch(`/api/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** The address of a view with these parameters. */
export function address(view, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value != null));
  return `/${view}${query.size ? `?${query}` : ""}`;
}
