// Rules that come without types. The first is CommonJS: vitest unwraps its default export, Node does not.
declare module '@textlint-rule/textlint-rule-pattern' {
  type Rule = import('@textlint/types').TextlintRuleModule;
  const rule: Rule | { readonly default: Rule };
  export default rule;
}
declare module 'textlint-rule-terminology' {
  const rule: import('@textlint/types').TextlintRuleModule;
  export default rule;
}
