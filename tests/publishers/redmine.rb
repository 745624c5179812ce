# Makes the database of a Redmine with a project without news, and serves it until standard input ends.
Thread.new { $stdin.read; exit!(0) }
ActiveRecord::Migration.verbose = false
ActiveRecord::Tasks::DatabaseTasks.migrate
ActiveRecord::Base.descendants.each(&:reset_column_information)
Setting.default_language = 'en'
Role.anonymous.add_permission!(:view_news, :view_issues, :view_changesets, :browse_repository)
modules = %w[news issue_tracking repository]
project = Project.create!(name: 'Some', identifier: 'some', is_public: true, enabled_module_names: modules)
repository = Repository::Git.new(project: project, identifier: 'code', url: '/nowhere')
repository.save!(validate: false)
(1..60).each do |number|
  sha = Digest::SHA1.hexdigest(number.to_s)
  at = Time.utc(2020, 1, 1) + number * 86_400
  Changeset.create!(repository: repository, revision: sha, scmid: sha, committer: 'a', committed_on: at)
end
# Debian keeps it among gems that Redmine does not name.
$LOAD_PATH.push(*Dir['/usr/share/rubygems-integration/all/gems/webrick-*/lib'])
require 'webrick'
require 'rack/handler/webrick'
quiet = WEBrick::Log.new($stderr, WEBrick::BasicLog::WARN)
Rack::Handler::WEBrick.run(
  Rails.application, Host: '127.0.0.1', Port: ENV.fetch('PORT').to_i, Logger: quiet, AccessLog: []
)
