/** `edge completion`: scripts for shells, made from the tree of commands. */
import type { Command } from 'commander';
import type { CommonOptions, Session } from '../session.js';

/** What can follow a command: others, or options and values. */
interface Node {
  /** The words from `edge` on. */
  readonly path: string;
  readonly words: readonly (readonly [word: string, description: string])[];
  /** Options that take a value, with what it can be. */
  readonly values: readonly (readonly [option: string, values: readonly string[]])[];
  readonly takesFiles: boolean;
}

export function completion(program: Command) {
  const nodes = nodesOf(program, []);
  const scripts = { bash: bash(nodes), zsh: zsh(nodes), fish: fish(nodes) };
  return async (session: Session, _options: CommonOptions, shell: keyof typeof scripts): Promise<void> => {
    const script = scripts[shell];
    session.out.result({ shell, script }, () => session.out.raw(script));
  };
}

function nodesOf(command: Command, before: readonly string[]): Node[] {
  const path = [...before, command.name()];
  const commands = command.commands.map((one) => [one.name(), one.description()] as const);
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) =>
    argChoices.map((one) => [one, ''] as const),
  );
  const options = command.options.flatMap(({ long, short, description }) =>
    [long, short].flatMap((name) => (name ? [[name, description] as const] : [])),
  );
  const node = {
    path: path.join(' '),
    words: [...commands, ...choices, ...options, ['--help', 'print help'] as const],
    values: command.options.flatMap(({ long, short, required, argChoices = [] }) =>
      required ? [long, short].flatMap((name) => (name ? [[name, argChoices] as const] : [])) : [],
    ),
    takesFiles: command.registeredArguments.some((argument) =>
      ['file', 'folder', 'path'].includes(argument.name()),
    ),
  };
  return [node, ...command.commands.flatMap((one) => nodesOf(one, path))];
}

/** The command that the words so far lead to, in the syntax that bash and zsh share. */
const WALK = (words: string, first: number, last: string) => `  local place=edge word i
  for ((i = ${first}; i < ${last}; i++)); do
    word="\${${words}[i]}"
    case " \${EDGE_COMMANDS} " in *" \${place// /_}_\${word} "*) place="$place $word" ;; esac
  done`;

function commandsLine(nodes: readonly Node[]): string {
  return `EDGE_COMMANDS='${nodes.map(({ path }) => path.replaceAll(' ', '_')).join(' ')}'`;
}

function bash(nodes: readonly Node[]): string {
  const cases = nodes.map(({ path, words, values, takesFiles }) => {
    const ofOptions = values.map(
      ([option, list]) =>
        `        ${option}) words='${list.join(' ')}'; files=${list.length === 0 ? 1 : 0} ;;`,
    );
    return [
      `    '${path}')`,
      '      case "$previous" in',
      ...ofOptions,
      `        *) words='${words.map(([word]) => word).join(' ')}'; files=${takesFiles ? 1 : 0} ;;`,
      '      esac ;;',
    ].join('\n');
  });
  return `# bash completion for edge: source <(edge completion bash)
${commandsLine(nodes)}
_edge() {
${WALK('COMP_WORDS', 1, 'COMP_CWORD')}
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" words='' files=0
  case "$place" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if ((files)); then COMPREPLY+=($(compgen -f -- "$current")); fi
}
complete -F _edge edge
`;
}

function zsh(nodes: readonly Node[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const cases = nodes.map(({ path, words, values, takesFiles }) => {
    const ofOptions = values.map(
      ([option, list]) =>
        `        ${option}) ${list.length === 0 ? '_files' : `compadd -- ${list.join(' ')}`}; return ;;`,
    );
    const described = words.map(([word, text]) => quoted(`${word.replaceAll(':', '\\:')}:${text}`));
    return [
      `    '${path}')`,
      '      case "$previous" in',
      ...ofOptions,
      '      esac',
      `      candidates=(${described.join(' ')})`,
      ...(takesFiles ? ['      _files'] : []),
      '      ;;',
    ].join('\n');
  });
  return `#compdef edge
# zsh completion for edge: source <(edge completion zsh)
${commandsLine(nodes)}
_edge() {
${WALK('words', 2, 'CURRENT')}
  local previous="\${words[CURRENT-1]}"
  local -a candidates
  case "$place" in
${cases.join('\n')}
  esac
  _describe 'edge' candidates
}
compdef _edge edge
`;
}

function fish(nodes: readonly Node[]): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = nodes.flatMap(({ path, words, values, takesFiles }) => {
    const here = `-n ${quoted(`__edge_at ${quoted(path)}`)}`;
    const valuesOf = new Map(values);
    return words.map(([word, text]) => {
      const about = text === '' ? '' : ` -d ${quoted(text)}`;
      if (!word.startsWith('-'))
        return `complete -c edge ${here}${takesFiles ? '' : ' -f'} -a ${quoted(word)}${about}`;
      const name = word.startsWith('--') ? `-l ${word.slice(2)}` : `-s ${word.slice(1)}`;
      const list = valuesOf.get(word);
      const value = list === undefined ? '' : list.length === 0 ? ' -r' : ` -x -a ${quoted(list.join(' '))}`;
      return `complete -c edge ${here} ${name}${value}${about}`;
    });
  });
  return `# fish completion for edge: edge completion fish | source
set -g __edge_commands ${nodes.map(({ path }) => quoted(path)).join(' ')}
function __edge_at
    set -l at edge
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word" $__edge_commands
            set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
${lines.join('\n')}
`;
}
