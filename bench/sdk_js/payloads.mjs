// The call of all modes: arguments of 500 bytes, a result of 1 KB.
export const ARGS = {
  query: "which hats were in fashion in London ".repeat(6),
  filters: { language: "en", tags: ["hats", "fashion", "history"], since: 1890 },
  limit: 25,
  session: { user: "a-user", note: "n".repeat(120), score: 0.75, is_new: false },
};
export const RESULT = {
  hits: Array.from({ length: 8 }, (_, n) => ({ id: n, title: `Hat number ${n}`, score: n / 7, text: "Felt, silk or straw. ".repeat(3) })),
  total: 8,
};
