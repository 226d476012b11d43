import java.io.File;
import org.apache.zookeeper.server.DataNode;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.ZKDatabase;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * Sets the create counter of znodes in the data of a server that is stopped: what the names of
 * their sequential children continue from.
 *
 * <p>Arguments: the server's data directory, the next number, the znodes' paths.
 */
class CreateCounter {
    public static void main(String[] arguments) throws Exception {
        File directory = new File(arguments[0]);
        int next = Integer.parseInt(arguments[1]);
        FileTxnSnapLog files = new FileTxnSnapLog(directory, directory);
        ZKDatabase database = new ZKDatabase(files);
        database.loadDataBase();
        DataTree tree = database.getDataTree();
        for (int index = 2; index < arguments.length; index++) {
            String path = arguments[index];
            DataNode node = tree.getNode(path);
            if (node == null) {
                throw new IllegalArgumentException("there is no " + path);
            }
            tree.setCversionPzxid(path, next, node.stat.getPzxid());
            int set = node.stat.getCversion();
            if (set != next) {
                throw new IllegalArgumentException(path + " is at " + set + " already");
            }
        }
        files.save(tree, database.getSessionWithTimeOuts(), true);
        files.close();
    }
}
