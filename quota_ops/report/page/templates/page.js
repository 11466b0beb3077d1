"use strict";
(() => {
  // The rows are data: a table draws the first of them, and more when a reader asks for more.
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.querySelector("form");
  const found = form.querySelector("output");
  const selects = [...form.querySelectorAll("select")];
  const MORE = 200;
  const escaped = (text) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
  const few = (number) => number.toLocaleString("en");

  const command = (text) => `<code class="command">${text}</code><button type="button" class="copy" aria-label="Copy: ${text}">Copy</button>`;
  const numberOf = ({ columns }, row, name) => typeof columns[name] === "number" ? columns[name] : columns[name][row];
  const textOf = (table, row, name) => data.texts[numberOf(table, row, name)];
  const draw = (table, row) => data.forms[numberOf(table, row, "form")].replace(/{(\w+)}/g, (_, name) => escaped(textOf(table, row, name)));

  const UNITS = { "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 2 ** 10, "MiB/s": 2 ** 20, "GiB/s": 2 ** 30, "TiB/s": 2 ** 40 };
  const measure = (text) => {
    const parts = /^([+\u2212-]?)([\d,.]+)(?: ?(\S+))?/.exec(text);
    if (!parts) return text === "unlimited" ? Infinity : null;
    return (parts[1] && parts[1] !== "+" ? -1 : 1) * Number(parts[2].replaceAll(",", "")) * (UNITS[parts[3]] ?? 1);
  };
  const value = (table, row, name) => {
    const text = textOf(table, row, name);
    if (["current", "desired", "change"].includes(name)) return measure(text) ?? -Infinity;
    if (name === "source") return text.replace(/\d+/g, (digits) => digits.padStart(9, "0")); // line 9 is before line 10
    return name === "since" ? text.replace(/^after /, "") : text;
  };

  const tables = [...document.querySelectorAll("[data-table]")].map((part) => {
    const { rows, columns } = data.tables[part.dataset.table];
    const all = [...Array(rows).keys()];
    const headings = [...part.querySelectorAll("thead th")];
    const searched = Object.keys(columns).filter((name) => !["form", "link_start", "link", "commit"].includes(name));
    return { part, columns, searched, all, shown: all, drawn: data.first, headings, body: part.querySelector("tbody"), more: part.querySelector(".more"), texts: [] };
  });
  const total = tables.reduce((sum, one) => sum + one.all.length, 0);
  const state = { words: [], sort: "", down: false };

  const wordsOf = (table, row) => table.texts[row] ??= table.searched.map((name) => textOf(table, row, name)).join("\n").toLowerCase();
  const paint = (table, from = 0) => {
    const owners = new Map(), ownerOf = (row) => textOf(table, row, "owner");
    if (!state.sort) for (const row of table.shown) owners.set(ownerOf(row), (owners.get(ownerOf(row)) ?? 0) + 1);
    let html = "";
    table.shown.slice(from, table.drawn).forEach((row, index) => {
      const before = table.shown[from + index - 1], owner = ownerOf(row);
      if (owners.size > 1 && (before === undefined || ownerOf(before) !== owner)) {
        html += `<tr class="group"><th colspan="${table.headings.length}" scope="rowgroup">${escaped(owner) || "no owner"} <span>${few(owners.get(owner))}</span></th></tr>`;
      }
      html += draw(table, row);
    });
    if (from === 0) table.body.replaceChildren();
    table.body.insertAdjacentHTML("beforeend", html);
    tell(table);
  };
  const tell = (table) => {
    const left = table.shown.length - table.drawn;
    table.more.hidden = left <= 0;
    table.more.querySelector("span").textContent = `${few(left)} more rows, which report.json lists too`;
    const button = table.more.querySelector("button");
    button.hidden = false;
    button.textContent = `Show ${few(Math.min(MORE, left))} more`;
    mark();
  };

  const mark = () => {
    if (!CSS.highlights) return;
    const ranges = [];
    if (state.words.length) {
      const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT, (node) =>
        node.parentElement.closest("tbody tr") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP);
      for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        const text = node.data.toLowerCase();
        if (text.length !== node.data.length) continue;
        for (const word of state.words) {
          for (let start = text.indexOf(word); start >= 0; start = text.indexOf(word, start + word.length)) {
            const range = new Range();
            range.setStart(node, start);
            range.setEnd(node, start + word.length);
            ranges.push(range);
          }
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };

  const search = () => {
    state.words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = selects.filter((one) => one.value !== "").map((one) => [one.name, one.value]);
    const narrowed = state.words.length > 0 || wanted.length > 0;
    let hits = 0;
    for (const table of tables) {
      table.shown = table.all.filter((row) => wanted.every(([name, text]) => textOf(table, row, name) === text)
        && state.words.every((word) => wordsOf(table, row).includes(word)));
      if (state.sort) {
        const sign = state.down ? -1 : 1;
        const keys = new Map(table.shown.map((row) => [row, value(table, row, state.sort)]));
        table.shown.sort((a, b) => {
          const [one, other] = [keys.get(a), keys.get(b)];
          return sign * (one < other ? -1 : one > other ? 1 : 0);
        });
      }
      hits += table.shown.length;
      table.drawn = data.first;
      table.part.hidden = table.shown.length === 0;
      if (table.part.matches("details")) table.part.open = narrowed ? table.shown.length > 0 : table.part.open && state.sort !== "";
      paint(table);
    }
    found.dataset.filter = [form.elements.words.value, ...wanted.map(([, text]) => text)].filter(Boolean).join(", "); // for print
    found.textContent = narrowed ? `${few(hits)} of ${few(total)} rows` : "";
  };

  let written = "";
  const remember = () => {
    const names = new URLSearchParams();
    for (const one of form.elements) if (one.name && one.value) names.set(one.name, one.value);
    if (state.sort) names.set("sort", (state.down ? "-" : "") + state.sort);
    written = names.toString();
    if (written !== location.hash.slice(1)) location.replace(`#${written}`);
  };
  const recall = () => {
    const names = new URLSearchParams(location.hash.slice(1));
    for (const one of form.elements) {
      const wanted = names.get(one.name) ?? "";
      if (one.options && ![...one.options].some((option) => option.value === wanted)) one.add(new Option(wanted));
      if (one.name) one.value = wanted;
    }
    const sort = names.get("sort") ?? "";
    state.down = sort.startsWith("-");
    state.sort = tables[0]?.headings.some((one) => sort.replace("-", "") === one.dataset.column) ? sort.replace("-", "") : "";
    showSort();
  };

  const showSort = () => {
    for (const table of tables) {
      for (const one of table.headings) {
        if (one.dataset.column === state.sort) one.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else one.removeAttribute("aria-sort");
      }
    }
  };
  for (const table of tables) {
    for (const one of table.headings) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = one.textContent;
      button.title = "Sort by this column; a third click restores the order by owner and risk";
      one.replaceChildren(button);
      button.addEventListener("click", () => {
        const name = one.dataset.column;
        if (state.sort === name && state.down) [state.sort, state.down] = ["", false];
        else [state.sort, state.down] = [name, state.sort === name];
        showSort();
        search();
        remember();
      });
    }
    table.more.querySelector("button").addEventListener("click", () => {
      const from = table.drawn;
      table.drawn += MORE;
      paint(table, from);
    });
    tell(table);
  }

  const said = document.getElementById("said");
  document.addEventListener("click", async ({ target }) => {
    if (!target.matches(".copy")) return;
    const text = target.previousElementSibling;
    getSelection().selectAllChildren(text);
    let copied = true;
    try {
      await navigator.clipboard.writeText(text.textContent); // it is missing on a page of plain HTTP
    } catch {
      copied = document.execCommand("copy");
    }
    target.textContent = said.textContent = copied ? "Copied" : "Selected: press Ctrl+C";
    setTimeout(() => { target.textContent = "Copy"; said.textContent = ""; }, 3000);
  });

  // Airflow shows the page in a frame that may not open other sites: a link shows its address there.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (window.top === window || !link || link.origin === location.origin) return;
    event.preventDefault();
    if (!link.nextElementSibling?.matches(".command")) link.insertAdjacentHTML("afterend", ` ${command(escaped(link.href))}`);
  });

  let soon;
  const later = () => { clearTimeout(soon); soon = setTimeout(() => { search(); remember(); }, 60); };
  form.addEventListener("input", later);
  form.addEventListener("reset", () => setTimeout(() => { search(); remember(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) === written) return; // a reader may have typed more since
    written = location.hash.slice(1);
    recall();
    search();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select")) {
      event.preventDefault();
      form.elements.words.focus();
    } else if (event.key === "Escape" && form.contains(event.target)) {
      form.reset();
    }
  });
  form.hidden = total === 0;
  document.documentElement.classList.add("scripted");

  // Which limit applies to a client, by the same levels as quota-ops resolve.
  const lookup = document.getElementById("lookup");
  const unpack = async ({ stored }) => {
    const bytes = Uint8Array.from(atob(stored), (char) => char.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const { texts, rows, addresses, named } = JSON.parse(await new Response(text).text());
    const limits = new Map(rows.map(([user, client, key, text]) => [JSON.stringify([user, client, key]), texts[text]]));
    return { limits, addresses: new Map(Object.entries(addresses)), named };
  };
  const resolve = (limits, known, user, client) => {
    const names = (own, typed) => own === null ? null : own ? typed : "";
    const applied = new Set();
    return limits.levels.map(([words, ofUser, ofClient], rank) => {
      const sends = ofClient === null || client !== "";
      return [`${rank + 1}. ${words}`, ...limits.keys.map((_, key) => {
        const text = known.get(JSON.stringify([names(ofUser, user), names(ofClient, client), key]));
        if (text === undefined || (ofClient && client === "")) return ["none", ""]; // "" is the default
        if (!sends) return [text, "sends no client id"];
        if (applied.has(key)) return [text, "overridden"];
        applied.add(key);
        return [text, "applies"];
      })];
    });
  };
  // Both decimal and IPv6 addresses in the shortest spelling, in which Python wrote the others.
  const normalize = (typed) => {
    if (/^(\d{1,3}\.){3}\d{1,3}$/.test(typed)) {
      return typed.split(".").every((one) => one < 256 && one === String(Number(one))) ? typed : null;
    }
    try {
      const host = new URL(`http://[${typed}]/`).hostname.slice(1, -1);
      const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(host)?.slice(1).map((one) => parseInt(one, 16));
      return mapped ? mapped.flatMap((one) => [one >> 8, one & 255]).join(".") : host;
    } catch {
      return null;
    }
  };
  const table = (name, heads, rows) => `<table aria-label="${name}"><thead><tr>${heads.map((one) => `<th scope="col">${escaped(one)}</th>`).join("")}</tr></thead><tbody>`
    + rows.map(([words, ...cells]) => `<tr><th scope="row">${escaped(words)}</th>${cells.map(([text, fate]) =>
      `<td class="${fate === "applies" ? "applies" : "quiet"}">${escaped(text)}${fate && ` <small>${escaped(fate)}</small>`}</td>`).join("")}</tr>`).join("") + "</tbody></table>";
  const showClient = (limits, known, user, client) => {
    const levels = resolve(limits, known, user, client);
    const names = { user, client };
    const shared = limits.keys.map((key, at) => {
      const applied = levels.findIndex((one) => one[at + 1][1] === "applies");
      if (applied < 0 || levels[applied][at + 1][0] === "unlimited") return `${key}: nothing limits it`;
      return `${key}: shared by ${limits.levels[applied][3].replace(/{(\w+)}/g, (_, one) => names[one])}`;
    });
    return [`User ${user}, ${client ? `client id ${client}` : "no client id"}.`,
      table("Levels of the lookup", ["level", ...limits.keys], levels)
      + `<ul>${shared.map((one) => `<li>${escaped(one)}</li>`).join("")}</ul>`];
  };
  const showAddress = (limits, { addresses, named }, typed) => {
    const address = normalize(typed);
    if (address === null) return [`${typed} is not an IP address: write it in digits, without leading zeros, brackets or a zone.`, ""];
    const own = addresses.get(address), anyone = addresses.get("");
    const fate = own && own.length > 1 ? "one of these applies: they are spellings of one address" : "applies";
    const rows = [["address", own ? [own.toSorted().join(" or "), fate] : ["none", ""]],
      ["any address", anyone ? [anyone[0], own ? "overridden" : "applies"] : ["none", ""]]];
    const more = named ? ` ${few(named)} limits are stored by a host name, which each broker resolves itself.` : "";
    return [`Address ${address}: on each node, brokers and controllers alike.${more}`,
      table("Levels of an address", ["level", limits.ip_key], rows)];
  };
  if (lookup) {
    lookup.hidden = false;
    let known;
    lookup.addEventListener("submit", async (event) => {
      event.preventDefault();
      known ??= await unpack(data.limits);
      const { user, client, ip } = Object.fromEntries(new FormData(lookup));
      const found = [
        ...(user || client || !ip ? [showClient(data.limits, known.limits, user || data.limits.anonymous, client)] : []),
        ...(ip ? [showAddress(data.limits, known, ip.trim())] : []),
      ];
      const hints = [
        user.startsWith("User:") && `Brokers compare only the name: look up ${user.slice(5)}.`,
        [user, client].some((name) => name !== name.trim()) && "A name begins or ends with a blank, which is a part of it.",
      ].filter(Boolean);
      lookup.querySelector("output").textContent = [...found.map(([words]) => words), ...hints].join(" ");
      const shown = document.getElementById("levels");
      shown.tabIndex = 0; // it scrolls sideways on a narrow screen
      shown.innerHTML = found.map(([, html]) => html).join("");
    });
  }
  if (location.hash.length > 1) {
    recall();
    search();
  }
})();
