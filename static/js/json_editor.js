// Replaces every textarea with data-json-editor by a JSON editor. The textarea stays underneath and is
// submitted. Without this script it is the editor.
//
// The editor is in a shadow root. There it uses constructed style sheets, which the content security
// policy allows; in the document it would write a <style>. Custom properties apply inside, too.
"use strict";

(() => {
  const {
    EditorState, EditorView, HighlightStyle, StateEffect, bracketMatching, defaultKeymap, drawSelection, ensureSyntaxTree,
    foldGutter, foldKeymap, forceLinting, highlightSpecialChars, history, historyKeymap, indentOnInput, json,
    keymap, lineNumbers, lintGutter, lintKeymap, linter, syntaxHighlighting, tags,
  } = codemirror;

  const colours = HighlightStyle.define([
    { tag: tags.propertyName, color: "var(--ink)", fontWeight: "600" },
    { tag: tags.string, color: "var(--ok)" },
    { tag: tags.number, color: "var(--open)" },
    { tag: [tags.bool, tags.null], color: "var(--accent)" },
    { tag: [tags.brace, tags.squareBracket, tags.separator], color: "var(--dim)" },
    { tag: tags.invalid, color: "var(--failed)" },
  ]);

  const theme = EditorView.theme({
    "&": { color: "var(--ink)", backgroundColor: "var(--surface)", fontSize: "13px" },
    "&.cm-focused": { outline: "none" },
    ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.5", maxHeight: "440px", overflow: "auto" },
    ".cm-content, .cm-gutter": { minHeight: "68px" },
    ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
    ".cm-cursor": { borderLeftColor: "var(--ink)" },
    ".cm-gutters": { color: "var(--dim)", backgroundColor: "var(--sunken)", border: "0" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
      backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)",
    },
    "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
    ".cm-foldPlaceholder": { color: "var(--dim)", backgroundColor: "var(--sunken)", borderColor: "var(--line)" },
    ".cm-tooltip": { color: "var(--ink)", backgroundColor: "var(--surface)", borderColor: "var(--line-strong)" },
    ".cm-diagnostic": { fontFamily: "var(--font)", fontSize: "12.5px", maxWidth: "60ch" },
    ".cm-diagnostic-error": { borderLeftColor: "var(--failed)" },
    ".cm-diagnostic-warning": { borderLeftColor: "var(--violation-bar)" },
  });

  // Dispatched when the server has answered, so that its problems are shown.
  const answered = StateEffect.define();
  const isAnswer = (update) => update.transactions.some((one) => one.effects.some((each) => each.is(answered)));

  // The value at a JSON pointer, or the last value on its path that exists.
  function nodeAt(state, pointer) {
    const text = (node) => state.sliceDoc(node.from, node.to);
    let node = ensureSyntaxTree(state, state.doc.length, 200)?.topNode.firstChild;
    for (const part of pointer.split("/").slice(1)) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      let next = null;
      if (node?.name === "Object") {
        for (const property of node.getChildren("Property")) {
          if (nameOf(text(property.firstChild)) === name) next = property.lastChild;
        }
      } else if (node?.name === "Array") {
        let at = 0;
        for (let child = node.firstChild; child; child = child.nextSibling) {
          if (!["[", "]", ",", "⚠"].includes(child.name) && at++ === Number(name)) next = child;
        }
      }
      if (!next) break;
      node = next;
    }
    return node;
  }

  function nameOf(token) {
    try {
      return JSON.parse(token);
    } catch {
      return null;
    }
  }

  // The problems that the server reported for a document, with their places. The list beside the form
  // has their texts.
  function problems(state, member) {
    const items = document.querySelectorAll(`#check [data-member="${member}"][data-pointer]`);
    return [...items].filter((item) => item.dataset.pointer || item.dataset.line).map((item) => {
      const message = item.querySelector(".message").textContent;
      if (item.dataset.line) return { ...placeOf(state.doc, item.dataset), severity: "error", message };
      const node = nodeAt(state, item.dataset.pointer);
      return {
        from: node?.from ?? 0,
        to: Math.min(node?.to ?? 0, state.doc.lineAt(node?.from ?? 0).to),
        severity: "warning" in item.dataset ? "warning" : "error",
        message,
      };
    });
  }

  // Where a text is no longer valid JSON, by the server's line and column: browsers do not give the
  // place. The text may have become shorter since.
  function placeOf(doc, { line: number, column }) {
    const line = doc.line(Math.min(Number(number), doc.lines));
    const to = Math.min(line.from + Number(column), line.to);
    return { from: Math.max(line.from, to - 1), to };
  }

  // When somebody types over a selection, Chromium writes its style as an attribute, which the policy
  // blocks.
  const typing = EditorView.domEventHandlers({
    beforeinput(event, view) {
      const { state } = view;
      if (event.inputType !== "insertText" || !event.data || view.composing || state.selection.main.empty) {
        return false;
      }
      event.preventDefault();
      view.dispatch(state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
      return true;
    },
  });

  function replace(textarea) {
    const label = document.querySelector(`label[for="${textarea.id}"]`);
    const host = document.createElement("div");
    host.className = "json-editor";
    host.dataset.editorOf = textarea.name;
    const root = host.attachShadow({ mode: "open" });
    const view = new EditorView({
      doc: textarea.value,
      root,
      parent: root,
      extensions: [
        lineNumbers(), foldGutter(), lintGutter(), highlightSpecialChars(), history(), drawSelection(),
        EditorState.tabSize.of(2), indentOnInput(), bracketMatching(), json(), syntaxHighlighting(colours), theme,
        // Tab moves to the next field, as usual.
        keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap]),
        linter((of) => (of.state.doc.toString().trim() ? problems(of.state, textarea.name) : []), { delay: 300, needsRefresh: isAnswer }),
        EditorView.lineWrapping, typing,
        EditorView.contentAttributes.of({ "aria-label": label?.textContent ?? textarea.name, spellcheck: "false" }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          textarea.value = update.state.doc.toString();
          textarea.dispatchEvent(new Event("input", { bubbles: true }));
        }),
      ],
    });
    textarea.classList.add("has-editor");
    textarea.after(host);
    label?.addEventListener("click", () => view.focus());
    return view;
  }

  const views = [...document.querySelectorAll("textarea[data-json-editor]")].map(replace);
  const check = document.querySelector("#check");
  if (check) {
    const show = (view) => {
      view.dispatch({ effects: answered.of(null) });
      forceLinting(view);
    };
    new MutationObserver(() => views.forEach(show)).observe(check, { childList: true });
  }
})();
