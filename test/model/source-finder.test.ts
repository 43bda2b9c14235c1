/** Which files belong to a handler: what rustc would read of a folder. */
import { expect } from 'chai';
import fc from 'fast-check';
import { canMatchBelow, filePatternProblem, isAbout, matchesPattern } from '../../src/model/file-patterns.js';
import { findFiles } from '../../src/model/source-finder.js';

/** @param folder texts or bytes by path, the entry among them */
async function found(entry: string, folder: Readonly<Record<string, string | Buffer>>) {
  const code = folder[entry];
  const read = async (path: string) => {
    const content = folder[path];
    return content === undefined ? undefined : Buffer.from(content);
  };
  const { files, problems } = await findFiles(entry, String(code), read);
  return { files: [...files.keys()].sort(), problems };
}

const paths = async (entry: string, folder: Readonly<Record<string, string | Buffer>>) => {
  const { files, problems } = await found(entry, folder);
  expect(problems).to.deep.equal([]);
  return files;
};

describe('the files of a handler', () => {
  it('finds modules beside the code and below it, and those that they name', async () => {
    const files = await paths('src/hello.rs', {
      'src/hello.rs': 'mod common;\npub(crate) mod db;',
      'src/common.rs': 'mod text;',
      'src/common/text.rs': '',
      'src/db/mod.rs': 'mod rows;',
      'src/db/rows.rs': '',
      'src/unused.rs': '',
    });
    expect(files).to.deep.equal(['src/common.rs', 'src/common/text.rs', 'src/db/mod.rs', 'src/db/rows.rs']);
  });

  it('finds modules of modules that are written as blocks', async () => {
    const files = await paths('main.rs', {
      'main.rs': 'mod a { mod b; #[path = "x"] mod c { mod d; } }\nmod own;',
      'a/b.rs': '',
      'a/x/d.rs': '',
      'own.rs': 'mod e { mod f; }',
      'own/e/f.rs': '',
    });
    expect(files).to.deep.equal(['a/b.rs', 'a/x/d.rs', 'own.rs', 'own/e/f.rs']);
  });

  it('finds modules of a block with a path of its own beside each other, also in a file that is no mod.rs', async () => {
    const files = await paths('main.rs', {
      'main.rs': 'mod own;',
      'own.rs': '#[path = "dir"] mod a { mod b; mod c { mod d; } }',
      'dir/b.rs': '',
      'dir/c/d.rs': '',
    });
    expect(files).to.deep.equal(['dir/b.rs', 'dir/c/d.rs', 'own.rs']);
  });

  it('finds what attributes include, and all places that a module may have', async () => {
    const files = await paths('main.rs', {
      'main.rs': [
        '#![doc = include_str!("page.md")]',
        '#[doc = include_str!("db.md")]',
        '#[cfg_attr(test, path = "mock.rs")]',
        '#[cfg_attr(windows, path = "win.rs")]',
        'pub(crate) mod db;',
        '#[cfg_attr(docsrs, doc = include_str!("missing.md"))] fn f() {}',
      ].join('\n'),
      ...{ 'page.md': '', 'db.md': '', 'mock.rs': '', 'win.rs': '', 'db.rs': '' },
    });
    expect(files).to.deep.equal(['db.md', 'db.rs', 'mock.rs', 'page.md', 'win.rs']);
  });

  it('finds files that the attribute path names, whose modules are beside them', async () => {
    const files = await paths('src/main.rs', {
      'src/main.rs': '#[allow(dead_code)]\n#[path = "../shared/db.rs"]\npub mod db;\nmod r#type;',
      'shared/db.rs': 'mod rows;',
      'shared/rows.rs': '',
      'src/type.rs': '',
    });
    expect(files).to.deep.equal(['shared/db.rs', 'shared/rows.rs', 'src/type.rs']);
  });

  it('finds what is included, relative to the file that includes it', async () => {
    const files = await paths('src/main.rs', {
      'src/main.rs': `
        const PAGE: &str = include_str!("../page.html");
        const LOGO: &[u8] = std::include_bytes!["logo.png",];
        fn f() { println!("{}", include_str!(r"raw.txt")); include!("parts/body.rs"); }`,
      'page.html': '',
      'src/logo.png': Buffer.from([0xff]),
      'src/raw.txt': '',
      'src/parts/body.rs': 'include_str!("more.txt")',
      'src/parts/more.txt': '',
    });
    expect(files).to.deep.equal([
      ...['page.html', 'src/logo.png', 'src/parts/body.rs', 'src/parts/more.txt', 'src/raw.txt'],
    ]);
  });

  it('reads no names in comments, texts and names of other things', async () => {
    const files = await paths('main.rs', {
      'main.rs': [
        '// mod a;',
        '/* mod b; /* mod c; */ mod d; */',
        'const T: &str = "mod e; include_str!(\\"f\\")";',
        'const R: &str = r#"mod g;" "#;',
        "const C: char = '\"'; // mod h;",
        "fn f<'a>(modest: &'a str) { let x = '\\''; }",
        'fn include_str() {}',
      ].join('\n'),
      ...Object.fromEntries([...'abcdefgh'].map((name) => [`${name}.rs`, ''])),
    });
    expect(files).to.deep.equal([]);
  });

  it('takes what cfg and macros name when it is there, and misses nothing else', async () => {
    const code = [
      '#[cfg(test)] mod tests;',
      '#[cfg_attr(windows, path = "win.rs")] mod os;',
      'macro_rules! make { ($name:ident) => { mod made; } }',
      '#[cfg(test)] fn f() { include_str!("../../outside.txt"); }',
    ].join('\n');
    expect(await paths('main.rs', { 'main.rs': code })).to.deep.equal([]);
    expect(await paths('main.rs', { 'main.rs': code, 'tests.rs': '', 'made.rs': '' })).to.deep.equal([
      ...['made.rs', 'tests.rs'],
    ]);
  });

  it('misses nothing in a file or a block that cfg may leave out as a whole', async () => {
    const inner = '#![allow(dead_code)]\n#![cfg(windows)]\nmod win32;\nmod win64;\nmod c { mod d; }';
    for (const code of [
      inner,
      inner.replace('cfg(windows)', 'cfg_attr(unix, cfg(windows))'),
      `mod a { ${inner} }`,
      `mod a { mod b { ${inner} } }`,
      'fn f() { #![cfg(windows)] include_str!("a.txt"); include!("b.rs"); }',
      'struct S; impl S { #![cfg(windows)] const A: &str = include_str!("a.txt"); }',
    ]) {
      expect(await paths('main.rs', { 'main.rs': code }), code).to.deep.equal([]);
      expect(await paths('main.rs', { 'main.rs': 'mod own;', 'own.rs': code }), code).to.deep.equal([
        'own.rs',
      ]);
    }
    const { problems } = await found('main.rs', {
      'main.rs': 'mod a { #![cfg(windows)] mod b; }\nfn f() { #![cfg(windows)] }\nmod c;',
    });
    expect(problems).to.deep.equal(['main.rs:3: `mod c`: there is no c.rs, and no c/mod.rs']);
  });

  it('finds modules of a block that names its folder within itself, as rustc does', async () => {
    const cases: readonly (readonly [code: string, path: string])[] = [
      ['mod a { #![path="zz"] pub mod b; }', 'zz/b.rs'],
      ['mod a { //! doc\n #![allow(unused)] #![path = r"zz"] mod b; }', 'zz/b.rs'],
      ['mod a { #![path="yy"] #![path="zz"] mod b; }', 'yy/b.rs'],
      ['#[path="yy"] mod a { #![path="zz"] mod b; }', 'yy/b.rs'],
      ['#[cfg_attr(windows, path="yy")] mod a { #![path="zz"] mod b; }', 'zz/b.rs'],
      ['mod x { mod a { #![path="zz"] mod b; } }', 'x/zz/b.rs'],
      ['mod a { #![path="zz"] mod c { mod b; } }', 'zz/c/b.rs'],
      ['mod a { #![path="zz"] mod c { #![path="../w"] mod b; } }', 'w/b.rs'],
      ['mod a { fn f() { #![path="zz"] } mod b; }', 'a/b.rs'],
    ];
    for (const [code, path] of cases)
      expect(await paths('main.rs', { 'main.rs': code, [path]: '' }), code).to.deep.equal([path]);
    const below = { 'main.rs': 'mod own;', 'own.rs': 'mod a { #![path="zz"] mod b; }', 'zz/b.rs': '' };
    expect(await paths('main.rs', below)).to.deep.equal(['own.rs', 'zz/b.rs']);
    const { problems } = await found('main.rs', { 'main.rs': 'mod a { #![path="/etc"] mod b; }' });
    expect(problems).to.deep.equal(['main.rs:1: `mod b`: /etc/b.rs is outside of the folder of the project']);
  });

  it('takes names of modules as rustc does, which composes them, and no path that is not composed', async () => {
    expect(await paths('main.rs', { 'main.rs': 'mod cafe\u0301;', 'caf\u00e9.rs': '' })).to.deep.equal([
      'caf\u00e9.rs',
    ]);
    const { problems } = await found('main.rs', { 'main.rs': 'include_bytes!("cafe\u0301.png");' });
    expect(problems[0]).to.match(/^main\.rs:1: .*: a path must be in Unicode NFC/);
  });

  it('looks for nothing in modules whose folders have a longer path than any file', async () => {
    const deep = `${'mod aaaaaaaaa{'.repeat(200)}mod b;${'}'.repeat(200)}\nmod c;`;
    const { files, problems } = await found('main.rs', { 'main.rs': deep, 'c.rs': '' });
    expect(files).to.deep.equal(['c.rs']);
    expect(problems).to.deep.equal([
      'main.rs:1: `mod b`: the folders of the modules around it have too long a path',
    ]);
    const conditional = `#[cfg(a)]${deep}`;
    expect(await paths('main.rs', { 'main.rs': conditional, 'c.rs': '' })).to.deep.equal(['c.rs']);
  });

  it('finds modules of a file that names a path of its own, as rustc does', async () => {
    const inner = '#![path="zz/x.rs"] mod b;';
    const cases: readonly (readonly [files: Readonly<Record<string, string>>, path: string])[] = [
      [{ 'main.rs': 'mod own;', 'own.rs': inner }, 'zz/b.rs'],
      [{ 'main.rs': 'mod own;', 'own/mod.rs': inner }, 'zz/b.rs'],
      [{ 'main.rs': 'mod own;', 'own.rs': '#![path="zz/"] mod b;' }, 'b.rs'],
      [{ 'main.rs': 'mod own;', 'own.rs': '#![path="zz/x"] mod i { mod b; }' }, 'zz/i/b.rs'],
      [{ 'main.rs': 'mod own;', 'own.rs': 'mod sub;', 'own/sub.rs': inner }, 'zz/b.rs'],
      [{ 'main.rs': 'mod own;', 'own.rs': 'mod i { mod sub; }', 'own/i/sub.rs': inner }, 'own/i/zz/b.rs'],
      [{ 'main.rs': '#[path="own.rs"] mod o;', 'own.rs': inner }, 'b.rs'],
    ];
    for (const [files, path] of cases) {
      const others = Object.keys(files).filter((name) => name !== 'main.rs');
      expect(await paths('main.rs', { ...files, [path]: '' }), path).to.deep.equal([...others, path].sort());
    }
  });

  it('says with its line what a module names and is not there', async () => {
    const { problems } = await found('src/main.rs', {
      'src/main.rs': '\nmod common;\n',
      'src/common.rs': '// a\n/* b\n*/ #[path = "missing.rs"] mod other;',
    });
    expect(problems).to.deep.equal(['src/common.rs:3: `mod other`: there is no src/missing.rs']);
    const { problems: both } = await found('src/main.rs', { 'src/main.rs': '\n\nmod common;' });
    expect(both).to.deep.equal([
      'src/main.rs:3: `mod common`: there is no src/common.rs, and no src/common/mod.rs',
    ]);
  });

  it('says with its line what leaves the folder of the project', async () => {
    const { problems } = await found('src/main.rs', {
      'src/main.rs': 'const A: &str = include_str!("../../secret");\n#[path = "/etc/x.rs"] mod x;',
    });
    expect(problems).to.deep.equal([
      'src/main.rs:1: `include_str!("../../secret")`: ../secret is outside of the folder of the project',
      'src/main.rs:2: `mod x`: /etc/x.rs is outside of the folder of the project',
    ]);
  });

  it('says which modules are a circle, and which are not UTF-8', async () => {
    const { problems } = await found('a.rs', {
      'a.rs': 'mod b;\nmod bytes;\nmod twice;',
      'twice.rs': '',
      'twice/mod.rs': '',
      'b.rs': '#[path = "a.rs"] mod again;',
      'bytes.rs': Buffer.from([0xff]),
    });
    expect(problems).to.deep.equal([
      'b.rs:1: `mod again`: modules in a circle: a.rs -> b.rs -> a.rs',
      'a.rs:2: `mod bytes`: bytes.rs is not UTF-8, as all Rust is: save it so',
      'a.rs:3: `mod twice`: it is at twice.rs and at twice/mod.rs: remove one of them',
    ]);
  });

  it('looks through a large file in little time, and through one without an end of its comment', async () => {
    const code = `${'fn f() { let x = "text"; }\n'.repeat(100_000)}mod a;`;
    expect(await paths('main.rs', { 'main.rs': code, 'a.rs': '/* '.repeat(100_000) })).to.deep.equal([
      'a.rs',
    ]);
    // Brackets without partners.
    for (const part of [
      ') mod a; ',
      '#[path mod a; ',
      'include_str!("a.rs" ',
      '( mod a; ',
      'mod b { mod a; ',
      '#![path = "b" mod a; ',
      ') #![cfg(test)] mod a; ',
    ])
      await found('main.rs', { 'main.rs': part.repeat(50_000), 'a.rs': '' });
  });
});

describe('patterns of paths', () => {
  const NAME = fc.constantFrom('a', 'b', '.a', 'ab');
  const PATTERN = fc
    .array(fc.constantFrom('a', 'b', '.a', '*', 'a*', '**'), { minLength: 1, maxLength: 4 })
    .map((names) => names.join('/'))
    .filter((pattern) => filePatternProblem(pattern) === undefined);
  const cases: readonly (readonly [
    pattern: string,
    matching: readonly string[],
    others: readonly string[],
  ])[] = [
    ['page.html', ['page.html'], ['a/page.html', 'page.htm']],
    ['*.sql', ['a.sql', 'a.b.sql'], ['a/b.sql', 'a.sqlx', '.sql']],
    ['sql/**/*.sql', ['sql/a.sql', 'sql/a/b/c.sql'], ['a.sql', 'sql/a.txt']],
    ['templates', ['templates/a', 'templates/a/b'], ['template/a']],
    ['templates/', ['templates/a'], ['templates2/a']],
    ['**', ['a', 'a/b'], ['.a', 'a/.b']],
    ['.sqlx/**', ['.sqlx/q.json'], ['.sqlx/.git', 'sqlx/q.json']],
    ['a*b*c', ['abc', 'aXbXc', 'abbc'], ['ac', 'abcd']],
  ];
  for (const [pattern, matching, others] of cases)
    it(`the pattern ${pattern} of an include matches ${matching.join(', ')}`, () => {
      for (const path of matching) expect(matchesPattern(path, pattern), path).to.equal(true);
      for (const path of others) expect(matchesPattern(path, pattern), path).to.equal(false);
    });

  for (const [pattern, entered, others] of [
    ['templates', ['templates', 'templates/a', 'templates/a/b'], ['template', 'a', 'a/templates']],
    ['templates/', ['templates'], ['templates2', 'templates/.git']],
    ['sql/*/*.sql', ['sql', 'sql/a', 'sql/a/b.sql'], ['sqlx', 'sql/a/b', 'a/sql']],
    ['sql/**/deep/*.sql', ['sql', 'sql/a', 'sql/a/deep'], ['a', 'sql/.a', 'a/deep']],
    ['**', ['a', 'a/b'], ['.a', 'a/.b']],
    ['.sqlx/**', ['.sqlx', '.sqlx/a'], ['.sqlx/.git', 'sqlx']],
    ['*.txt', ['a.txt'], ['a', 'a/b.txt']],
  ] as const)
    it(`the pattern ${pattern} of an include can match below ${entered.join(', ')} only`, () => {
      for (const folder of entered) expect(canMatchBelow(folder, pattern), folder).to.equal(true);
      for (const folder of others) expect(canMatchBelow(folder, pattern), folder).to.equal(false);
    });

  it('a folder that matches any pattern of an include leads to what matches', () => {
    fc.assert(
      fc.property(fc.array(NAME, { minLength: 2, maxLength: 5 }), PATTERN, (names, pattern) => {
        if (!matchesPattern(names.join('/'), pattern)) return;
        for (let depth = 1; depth < names.length; depth++)
          expect(canMatchBelow(names.slice(0, depth).join('/'), pattern), `${names} ${pattern}`).to.equal(
            true,
          );
      }),
      { numRuns: 5_000 },
    );
  });

  it('a pattern of an include is about folders that it names, not about those that ** passes', () => {
    for (const [pattern, folder] of [
      ['templates', 'templates'],
      ['templates/**/*.html', 'templates'],
      ['*/a.html', 'templates'],
      ['**', 'templates'],
      ['pages', 'pages/link'],
    ] as const)
      expect(isAbout(pattern, folder), pattern).to.equal(true);
    for (const [pattern, folder] of [
      ['**/*.html', 'templates'],
      ['pages/**/*.html', 'pages/link'],
      ['templates2/*', 'templates'],
      ['*.html', 'templates'],
    ] as const)
      expect(isAbout(pattern, folder), pattern).to.equal(false);
  });

  it('refuses patterns of an include that leave the folder, or have many parts', () => {
    for (const pattern of ['/a', '../a', 'a/../b', 'a//b', './a', 'a\\b', '**/**/**/a'])
      expect(filePatternProblem(pattern), pattern).to.be.a('string');
    for (const pattern of ['a', 'a/', '**/*.sql', 'a/**'])
      expect(filePatternProblem(pattern)).to.equal(undefined);
  });
});
