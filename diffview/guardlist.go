package diffview

import "strings"

// dirClasses are directories (or files) that count with all that lies in them.
var dirClasses = classes(map[string]string{
	ClassEditor: ".vscode .idea .devcontainer .devcontainer.json .fleet .zed .vs .vim .nvim .emacs.d .sublime-project",
	ClassHook:   ".husky .githooks .lefthook",
	ClassAgent:  ".claude .cursor .codex .agents .gemini .windsurf .continue .aider .kiro .opencode .amazonq",
	ClassCI:     ".circleci .buildkite .woodpecker .gitea .forgejo .teamcity .tekton",
	ClassShell:  ".ssh .gnupg .direnv .bashrc.d .profile.d .zshrc.d",
})

// fileClasses are names that count wherever they lie.
var fileClasses = classes(map[string]string{
	ClassGit: ".gitmodules .gitattributes .gitconfig .lfsconfig",
	ClassShell: ".envrc .env.sh .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile " +
		".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .shrc .inputrc .xinitrc .xprofile " +
		".xsession .screenrc .tmux.conf .gdbinit .lldbinit .pypirc .netrc .wgetrc .curlrc .pythonrc .pryrc .irbrc .mise.toml mise.toml .tool-versions",
	ClassEditor: ".vimrc .nvimrc .gvimrc .exrc .emacs .dir-locals.el .lvimrc",
	ClassHook:   ".pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .lintstagedrc lefthook.yml .lefthook.yml lefthook.yaml .overcommit.yml",
	ClassAgent:  ".mcp.json mcp.json .cursorrules .aider.conf.yml .claude.json",
	ClassCI: ".gitlab-ci.yml .gitlab-ci.yaml .travis.yml azure-pipelines.yml azure-pipelines.yaml jenkinsfile .drone.yml .woodpecker.yml .woodpecker.yaml " +
		"bitbucket-pipelines.yml appveyor.yml .appveyor.yml .cirrus.yml codefresh.yml cloudbuild.yaml cloudbuild.yml buildspec.yml",
	ClassImport: "sitecustomize.py usercustomize.py conftest.py",
})

// buildFiles run only when a person builds, so they are flagged.
var buildFiles = set("makefile gnumakefile bsdmakefile package.json setup.py setup.cfg pyproject.toml tox.ini noxfile.py build.rs build.gradle " +
	"build.gradle.kts settings.gradle pom.xml cmakelists.txt meson.build rakefile gemfile justfile taskfile.yml taskfile.yaml sconstruct " +
	"dockerfile containerfile docker-compose.yml compose.yaml gulpfile.js gruntfile.js webpack.config.js vite.config.js vite.config.ts " +
	"jest.config.js babel.config.js build.zig mix.exs flake.nix default.nix shell.nix vagrantfile")

// gitHooks are the names under which git runs a hook.
var gitHooks = set("applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit " +
	"pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction " +
	"push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman post-index-change")

// prefixClasses are directories of several components.
var prefixClasses = []struct {
	parts []string
	class string
}{
	{[]string{".github", "workflows"}, ClassCI},
	{[]string{".github", "actions"}, ClassCI},
	{[]string{".gitlab", "ci"}, ClassCI},
	{[]string{".config", "fish"}, ClassShell},
	{[]string{".config", "git"}, ClassGit},
	{[]string{".config", "systemd"}, ClassShell},
	{[]string{".config", "autostart"}, ClassShell},
	{[]string{".config", "environment.d"}, ClassShell},
	{[]string{".config", "nvim"}, ClassEditor},
	{[]string{".config", "mise"}, ClassShell},
	{[]string{".cargo", "config"}, ClassShell},
	{[]string{".cargo", "config.toml"}, ClassShell},
	{[]string{".yarn", "plugins"}, ClassShell},
	{[]string{".yarn", "releases"}, ClassShell},
}

func classes(lists map[string]string) map[string]string {
	out := make(map[string]string)
	for class, names := range lists {
		for _, n := range strings.Fields(names) {
			out[n] = class
		}
	}
	return out
}

func set(names string) map[string]bool {
	out := make(map[string]bool)
	for _, n := range strings.Fields(names) {
		out[n] = true
	}
	return out
}
